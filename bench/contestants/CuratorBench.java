import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Curator's own loops, in its own process: a line says what to do, a line of JSON what came of it. */
public class CuratorBench {
    static final List<CuratorFramework> clients = new ArrayList<>();
    static String connect;

    public static void main(String[] args) throws Exception {
        connect = args[0];
        clientNumber(0);
        System.out.println("{}");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            System.out.println(run(words[0], Integer.parseInt(words[1]), Long.parseLong(words[2]), words[3]));
        }
        for (CuratorFramework client : clients) client.close();
        System.exit(0);
    }

    static CuratorFramework clientNumber(int number) throws Exception {
        while (clients.size() <= number) {
            CuratorFramework client = CuratorFrameworkFactory.newClient(connect, 20_000, 10_000, new ExponentialBackoffRetry(50, 10));
            client.start();
            client.blockUntilConnected();
            clients.add(client);
        }
        return clients.get(number);
    }

    /** `names`: each thread a name of its own; `tasks`: one name, one session; `sessions`: one name, a session each. */
    static String run(String mode, int threads, long ms, String name) throws Exception {
        List<InterProcessMutex> locks = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            String path = "/curator/" + name + (mode.equals("names") ? "-" + i : "");
            locks.add(new InterProcessMutex(clientNumber(mode.equals("sessions") ? i : 0), path));
        }
        // The first time makes the nodes that the lock lies in.
        for (InterProcessMutex lock : locks) {
            lock.acquire();
            lock.release();
        }
        AtomicLong done = new AtomicLong();
        AtomicLong errors = new AtomicLong();
        StringBuilder times = new StringBuilder();
        long cpu = cpu();
        long began = System.nanoTime();
        long end = began + ms * 1_000_000;
        List<Thread> all = new ArrayList<>();
        for (InterProcessMutex lock : locks) {
            Thread thread = new Thread(() -> {
                StringBuilder own = new StringBuilder();
                for (long asked = System.nanoTime(); asked < end; asked = System.nanoTime()) {
                    try {
                        lock.acquire();
                        lock.release();
                        done.incrementAndGet();
                        own.append(own.length() == 0 ? "" : ",").append((System.nanoTime() - asked) / 1e6);
                    } catch (Exception failure) {
                        errors.incrementAndGet();
                    }
                }
                synchronized (times) { times.append(times.length() == 0 || own.length() == 0 ? "" : ",").append(own); }
            });
            all.add(thread);
            thread.start();
        }
        for (Thread thread : all) thread.join();
        double took = (System.nanoTime() - began) / 1e6;
        return "{\"done\":" + done + ",\"errors\":" + errors + ",\"ms\":" + took + ",\"cpu\":" + (cpu() - cpu) / 1000
            + ",\"times\":[" + times + "]}";
    }

    static long cpu() {
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return system.getProcessCpuTime();
    }
}
