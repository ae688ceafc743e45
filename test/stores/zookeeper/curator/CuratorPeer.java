import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** The Java side of the tests: takes Curator's locks as told, and leaves its witness in a folder that Node shares. */
public class CuratorPeer {
    static CuratorFramework client;
    static String path;
    static Path folder;
    static final int INSIDE_MS = 15;

    /** connect, what to do, path of the lock, folder of the witness, threads, rounds, more */
    public static void main(String[] args) throws Exception {
        client = CuratorFrameworkFactory.newClient(args[0], 10_000, 10_000, new ExponentialBackoffRetry(50, 10));
        client.start();
        client.blockUntilConnected();
        path = args[2];
        folder = Path.of(args[3]);
        int threads = Integer.parseInt(args[4]);
        int rounds = Integer.parseInt(args[5]);
        switch (args[1]) {
            case "mutex" -> inThreads(threads, rounds, CuratorPeer::mutex);
            case "read-write" -> inThreads(threads, rounds, CuratorPeer::readWrite);
            case "semaphore" -> inThreads(threads, rounds, () -> semaphore(3));
            case "read" -> once(new InterProcessReadWriteLock(client, path).readLock());
            case "write" -> once(new InterProcessReadWriteLock(client, path).writeLock());
            case "revocable" -> revocable();
            case "revoke" -> Revoker.attemptRevoke(client, path);
            case "bench" -> bench(threads, rounds);
            default -> throw new IllegalArgumentException(args[1]);
        }
        client.close();
        System.out.println("DONE");
    }

    interface Section {
        void run() throws Exception;
    }

    /** Each thread has locks of its own, as processes would. */
    interface Sections {
        Section make();
    }

    static void inThreads(int threads, int rounds, Sections sections) throws Exception {
        List<Thread> all = new ArrayList<>();
        List<Throwable> failures = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            Section section = sections.make();
            Thread thread = new Thread(() -> {
                try {
                    for (int round = 0; round < rounds; round++) section.run();
                } catch (Throwable failure) {
                    failure.printStackTrace();
                    synchronized (failures) { failures.add(failure); }
                }
            });
            all.add(thread);
            thread.start();
        }
        for (Thread thread : all) thread.join();
        if (!failures.isEmpty()) System.exit(1);
    }

    static Section mutex() {
        InterProcessMutex mutex = new InterProcessMutex(client, path);
        return () -> {
            mutex.acquire();
            try {
                alone(CuratorPeer::count);
            } finally {
                mutex.release();
            }
        };
    }

    static Section readWrite() {
        InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, path);
        Random random = new Random();
        return () -> {
            boolean writes = random.nextInt(3) == 0;
            InterProcessMutex side = writes ? lock.writeLock() : lock.readLock();
            side.acquire();
            try {
                if (writes) {
                    alone(() -> {
                        if (present("reader-") > 0) throw new IllegalStateException("a writer met a reader");
                        Files.writeString(folder.resolve("counter"), "java " + System.nanoTime());
                    });
                } else {
                    beside("reader-", () -> {
                        if (Files.exists(folder.resolve("marker"))) throw new IllegalStateException("a reader met a writer");
                    });
                }
            } finally {
                side.release();
            }
        };
    }

    static Section semaphore(int permits) {
        InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, path, permits);
        return () -> {
            Lease lease = semaphore.acquire();
            try {
                beside("permit-", () -> {
                    if (present("permit-") > permits) throw new IllegalStateException("too many have a permit");
                });
            } finally {
                semaphore.returnLease(lease);
            }
        };
    }

    /** Waits for its turn, says so, and leaves. */
    static void once(InterProcessMutex side) throws Exception {
        side.acquire();
        System.out.println("HELD");
        side.release();
    }

    /** Holds a mutex until somebody asks for it. */
    static void revocable() throws Exception {
        InterProcessMutex mutex = new InterProcessMutex(client, path);
        CountDownLatch asked = new CountDownLatch(1);
        mutex.makeRevocable(lock -> asked.countDown());
        mutex.acquire();
        System.out.println("HELD");
        if (!asked.await(30, TimeUnit.SECONDS)) System.exit(1);
        System.out.println("ASKED");
        mutex.release();
    }

    /** Acquire and release, as fast as it goes: threads on as many names, then all on one, then with a session each. */
    static void bench(int seconds, int threads) throws Exception {
        measure("one thread", seconds, 1, i -> new InterProcessMutex(client, path + "/u" + i));
        measure("8 threads, 8 names", seconds, 8, i -> new InterProcessMutex(client, path + "/v" + i));
        InterProcessMutex shared = new InterProcessMutex(client, path + "/c");
        measure(threads + " threads, one name", seconds, threads, i -> shared);
        List<CuratorFramework> sessions = new ArrayList<>();
        measure(threads + " sessions, one name", seconds, threads, i -> {
            CuratorFramework own = CuratorFrameworkFactory.newClient(client.getZookeeperClient().getCurrentConnectionString(), 10_000, 10_000, new ExponentialBackoffRetry(50, 10));
            own.start();
            sessions.add(own);
            return new InterProcessMutex(own, path + "/s");
        });
        for (CuratorFramework own : sessions) own.close();
    }

    interface MutexOf {
        InterProcessMutex make(int thread);
    }

    static void measure(String what, int seconds, int threads, MutexOf mutexes) throws Exception {
        long[] count = new long[threads];
        List<Thread> all = new ArrayList<>();
        long warm = System.nanoTime() + 2_000_000_000L;
        long end = warm + seconds * 1_000_000_000L;
        for (int i = 0; i < threads; i++) {
            InterProcessMutex mutex = mutexes.make(i);
            int index = i;
            Thread thread = new Thread(() -> {
                try {
                    while (System.nanoTime() < end) {
                        mutex.acquire();
                        mutex.release();
                        if (System.nanoTime() > warm) count[index]++;
                    }
                } catch (Exception failure) {
                    failure.printStackTrace();
                }
            });
            all.add(thread);
            thread.start();
        }
        for (Thread thread : all) thread.join();
        long sum = 0;
        for (long one : count) sum += one;
        System.out.println("curator, " + what + ": " + sum / seconds + " per second");
    }

    /** With a marker that can exist once only. */
    static void alone(Section section) throws Exception {
        Path marker = folder.resolve("marker");
        try {
            Files.createFile(marker);
        } catch (FileAlreadyExistsException collision) {
            throw new IllegalStateException("two were inside at once");
        }
        section.run();
        Files.delete(marker);
    }

    static void beside(String prefix, Section section) throws Exception {
        Path marker = Files.createFile(folder.resolve(prefix + "java-" + Thread.currentThread().getId() + "-" + ProcessHandle.current().pid()));
        section.run();
        // Others must have the time to come in, or it proves nothing that they do not.
        Thread.sleep(INSIDE_MS);
        section.run();
        Files.delete(marker);
    }

    static long present(String prefix) throws Exception {
        try (Stream<Path> files = Files.list(folder)) {
            return files.filter(file -> file.getFileName().toString().startsWith(prefix)).count();
        }
    }

    /** Reads, adds and writes: loses updates if two do it at once. */
    static void count() throws Exception {
        Path counter = folder.resolve("counter");
        long value = Long.parseLong(Files.readString(counter).trim());
        Files.write(counter, Long.toString(value + 1).getBytes(StandardCharsets.UTF_8), StandardOpenOption.TRUNCATE_EXISTING);
    }
}
