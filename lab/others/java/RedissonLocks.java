import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RFencedLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Redisson's fenced lock, renewed by its watchdog. */
public class RedissonLocks implements Lines.Locks {
    private final RedissonClient redisson;

    RedissonLocks(String address, long ttl) {
        Config config = new Config();
        config.setLockWatchdogTimeout(ttl);
        config.useSingleServer().setAddress(address);
        redisson = Redisson.create(config);
    }

    public static void main(String[] args) throws Exception {
        Lines.serve(new RedissonLocks(args[0], Long.parseLong(args[1])));
    }

    @Override
    public Long take(String name, long waitMs) throws Exception {
        return redisson.getFencedLock(name).tryLockAndGetToken(waitMs, TimeUnit.MILLISECONDS);
    }

    @Override
    public boolean sure(String name) {
        return redisson.getFencedLock(name).isHeldByCurrentThread();
    }

    @Override
    public String release(String name) {
        RFencedLock lock = redisson.getFencedLock(name);
        try {
            lock.unlock();
            return "released";
        } catch (IllegalMonitorStateException notOurs) {
            return "expired";
        }
    }

    @Override
    public void close() {
        redisson.shutdown();
    }
}
