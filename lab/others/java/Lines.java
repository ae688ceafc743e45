import java.io.BufferedReader;
import java.io.InputStreamReader;

/** A lock client that is spoken to in lines: `take NAME MS`, `sure NAME`, `release NAME`, `close`. One answer each, in order. */
public class Lines {
    /** What a library is asked to do. One thread does all of it: locks belong to threads. */
    interface Locks {
        /** Null: not given in this time. The token, or 0 where there is none. */
        Long take(String name, long waitMs) throws Exception;

        /** Whether careful code would write now. */
        boolean sure(String name) throws Exception;

        /** `released`, or `expired`. */
        String release(String name) throws Exception;

        void close() throws Exception;
    }

    private static final long TICK_MS = 40;
    private static final long STALL_MS = 100;

    /** Whether this process gets no processor. What is late then is nobody's fault. */
    static void watchStalls() {
        Thread watch = new Thread(() -> {
            for (long last = System.nanoTime(); ; last = System.nanoTime()) {
                try {
                    Thread.sleep(TICK_MS);
                } catch (InterruptedException over) {
                    return;
                }
                long late = (System.nanoTime() - last) / 1_000_000 - TICK_MS;
                if (late > STALL_MS) say("stall " + late);
            }
        });
        watch.setDaemon(true);
        watch.start();
    }

    static void serve(Locks locks) throws Exception {
        watchStalls();
        say("ready");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            say(answer(locks, words));
            if (words[0].equals("close")) break;
        }
        // Whoever spoke to it is gone, or has closed it.
        System.exit(0);
    }

    static String answer(Locks locks, String[] words) {
        try {
            switch (words[0]) {
                case "take":
                    Long token = locks.take(words[1], Long.parseLong(words[2]));
                    return token == null ? "answer busy" : "answer " + token;
                case "sure":
                    return "answer " + locks.sure(words[1]);
                case "release":
                    return "answer " + locks.release(words[1]);
                default:
                    locks.close();
                    return "answer closed";
            }
        } catch (Exception failure) {
            return ("error " + failure).replace('\n', ' ');
        }
    }

    /** Also from the threads of a library: `lost` tells that nobody may be sure of a lock any more. */
    static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
