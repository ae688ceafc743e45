import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Curator's mutex. When the connection is suspended or lost, nobody is sure of a lock any more, as its notes say. */
public class CuratorLocks implements Lines.Locks {
    private static final int CONNECTION_MS = 3000;
    private final CuratorFramework client;
    private final Map<String, InterProcessMutex> locks = new HashMap<>();
    /** Which sessions a lock was taken in does not matter: a connection that was in doubt once ends all of them. */
    private volatile boolean sure;

    CuratorLocks(String connect, int sessionMs) throws Exception {
        client = CuratorFrameworkFactory.newClient(connect, sessionMs, CONNECTION_MS, new ExponentialBackoffRetry(100, 10));
        client.getConnectionStateListenable().addListener((from, state) -> {
            if (state != ConnectionState.SUSPENDED && state != ConnectionState.LOST) return;
            sure = false;
            Lines.say("lost");
        });
        client.start();
        client.blockUntilConnected();
    }

    public static void main(String[] args) throws Exception {
        Lines.serve(new CuratorLocks(args[0], Integer.parseInt(args[1])));
    }

    private InterProcessMutex of(String name) {
        return locks.computeIfAbsent(name, (each) -> new InterProcessMutex(client, "/lab/" + each));
    }

    @Override
    public Long take(String name, long waitMs) throws Exception {
        sure = true;
        return of(name).acquire(waitMs, TimeUnit.MILLISECONDS) ? 0L : null;
    }

    @Override
    public boolean sure(String name) {
        return sure && of(name).isOwnedByCurrentThread();
    }

    @Override
    public String release(String name) throws Exception {
        boolean certain = sure;
        try {
            of(name).release();
            return certain ? "released" : "expired";
        } catch (Exception failure) {
            // What it knows of the lock is of no use any more.
            locks.remove(name);
            throw failure;
        }
    }

    @Override
    public void close() {
        client.close();
    }
}
