import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.function.Supplier;

/**
 * A door before the server that shows how many queries of a client are under way at once.
 *
 * <p>It forwards every request, and holds the server's answers to queries back until as many wait as
 * the client is expected to have under way; then for a moment more, in which one too many would come.
 * So what it counts does not depend on how fast anybody is.
 */
final class Gauge {
    /** What is expected comes within milliseconds; a client that never sends it is not waited for longer. */
    private static final Duration PATIENCE = Duration.ofSeconds(10);
    /** In which one too many comes, if there is one. */
    private static final Duration MOMENT = Duration.ofMillis(40);
    /** What each side of a connection says for itself. */
    private static final Set<String> OF_THE_CONNECTION =
            Set.of("host", "connection", "content-length", "transfer-encoding", "expect", "upgrade");

    private final String server;
    private final HttpServer door;
    private final HttpClient onward = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private List<String> asked = new ArrayList<>();
    private int expected = 1;
    private int waiting;
    private int most;

    /** What a client did. */
    record Seen<T>(T result, int most, List<String> asked) {}

    /** A door before the server at that endpoint. */
    Gauge(String server) {
        this.server = server;
        try {
            door = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        } catch (IOException failure) {
            throw new AssertionError(failure);
        }
        door.setExecutor(Executors.newCachedThreadPool());
        door.createContext("/", this::forward);
        door.start();
    }

    String endpoint() {
        return "http://127.0.0.1:" + door.getAddress().getPort();
    }

    /** The most queries that are under way at once while this runs, and what they ask for, in no order. */
    <T> Seen<T> watch(int expected, Supplier<T> run) {
        begin(expected);
        T result = run.get();
        synchronized (this) {
            return new Seen<>(result, most, asked.stream().sorted().toList());
        }
    }

    private synchronized void begin(int expected) {
        this.expected = expected;
        most = 0;
        asked = new ArrayList<>();
    }

    private void forward(HttpExchange exchange) throws IOException {
        try (exchange) {
            HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(server).resolve(exchange.getRequestURI()));
            exchange.getRequestHeaders().forEach((name, values) -> {
                if (!OF_THE_CONNECTION.contains(name.toLowerCase())) {
                    values.forEach(value -> request.header(name, value));
                }
            });
            byte[] body = exchange.getRequestBody().readAllBytes();
            request.method(exchange.getRequestMethod(), HttpRequest.BodyPublishers.ofByteArray(body));
            HttpResponse<byte[]> answer = onward.send(request.build(), HttpResponse.BodyHandlers.ofByteArray());
            if (isPage(exchange)) {
                hold(exchange);
            }
            answer.headers().map().forEach((name, values) -> {
                if (!OF_THE_CONNECTION.contains(name.toLowerCase())) {
                    exchange.getResponseHeaders().put(name, values);
                }
            });
            int length = answer.body().length;
            exchange.sendResponseHeaders(answer.statusCode(), length == 0 ? -1 : length);
            exchange.getResponseBody().write(answer.body());
        } catch (InterruptedException interrupted) {
            throw new IOException(interrupted);
        }
    }

    /** Whether a request is for a page of a query: it is not when it is for a plan. */
    private static boolean isPage(HttpExchange exchange) {
        String type = exchange.getRequestHeaders().getFirst("content-type");
        return type != null && type.startsWith("application/query+json")
                && !exchange.getRequestHeaders().containsKey("x-ms-cosmos-is-query-plan-request");
    }

    private synchronized void hold(HttpExchange exchange) throws InterruptedException {
        asked.add(exchange.getRequestHeaders().getFirst("x-ms-documentdb-partitionkeyrangeid")
                + " " + exchange.getRequestHeaders().getFirst("x-ms-continuation"));
        waiting++;
        most = Math.max(most, waiting);
        notifyAll();
        await(PATIENCE, () -> most >= expected);
        await(MOMENT, () -> false);
        waiting--;
    }

    /** Waits, but not for longer. */
    private void await(Duration limit, Supplier<Boolean> enough) throws InterruptedException {
        long end = System.nanoTime() + limit.toNanos();
        for (long left = limit.toNanos(); left > 0 && !enough.get(); left = end - System.nanoTime()) {
            wait(left / 1_000_000 + 1);
        }
    }
}
