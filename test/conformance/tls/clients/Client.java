// Java's HttpClient. Says what it has met as a line of JSON; see ../clients_test.rb.

import java.io.FileInputStream;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.net.http.WebSocket;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.HexFormat;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

public class Client {
    static final String PIECE = "0123456789abcdef".repeat(65536);
    static String base;

    public static void main(String[] arguments) throws Exception {
        base = arguments[0];
        SSLContext context = trusting(arguments[1]);
        HttpClient client = HttpClient.newBuilder().sslContext(context).build();
        HttpResponse<String> first = ask(client, "/");
        System.out.printf("{\"get\": \"%s\", \"version\": \"%s\", \"posted\": \"%s\", \"downloaded\": \"%s\", \"events\": [%s], \"echo\": %b, ",
            first.body(), ask(client, "/version").body(), post(client), download(client), events(client), echo(client));
        // Another client has connections of its own; a session that is resumed keeps the time at which it was made.
        Thread.sleep(5);
        HttpResponse<String> again = ask(HttpClient.newBuilder().sslContext(context).build(), "/");
        System.out.printf("\"resumed\": %b}%n", created(again) == created(first));
        System.exit(0);
    }

    static SSLContext trusting(String path) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (InputStream file = new FileInputStream(path)) {
            store.setCertificateEntry("authority", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        TrustManagerFactory managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        managers.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, managers.getTrustManagers(), null);
        return context;
    }

    static HttpRequest.Builder request(String path) {
        return HttpRequest.newBuilder(URI.create(base + path)).timeout(Duration.ofSeconds(30));
    }

    static HttpResponse<String> ask(HttpClient client, String path) throws Exception {
        return client.send(request(path).build(), BodyHandlers.ofString());
    }

    static long created(HttpResponse<?> response) {
        return response.sslSession().get().getCreationTime();
    }

    static String post(HttpClient client) throws Exception {
        return client.send(request("/digest").POST(BodyPublishers.ofString(PIECE)).build(), BodyHandlers.ofString()).body();
    }

    static String download(HttpClient client) throws Exception {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        byte[] buffer = new byte[65536];
        try (InputStream body = client.send(request("/large").build(), BodyHandlers.ofInputStream()).body()) {
            for (int count; (count = body.read(buffer)) >= 0;) digest.update(buffer, 0, count);
        }
        return HexFormat.of().formatHex(digest.digest());
    }

    static String events(HttpClient client) throws Exception {
        HttpRequest request = request("/events").header("accept", "text/event-stream").build();
        HttpResponse<Stream<String>> response = client.send(request, BodyHandlers.ofLines());
        return response.body().filter(line -> line.startsWith("data:")).map(line -> "\"" + line.substring(5).trim() + "\"")
            .collect(Collectors.joining(", "));
    }

    static boolean echo(HttpClient client) throws Exception {
        CompletableFuture<String> echoed = new CompletableFuture<>();
        WebSocket socket = client.newWebSocketBuilder().buildAsync(URI.create(base.replace("https:", "wss:") + "/echo"), new WebSocket.Listener() {
            final StringBuilder text = new StringBuilder();

            @Override public CompletionStage<?> onText(WebSocket from, CharSequence data, boolean whole) {
                text.append(data);
                if (whole) echoed.complete(text.toString());
                from.request(1);
                return null;
            }
        }).get(30, TimeUnit.SECONDS);
        socket.sendText(PIECE, true);
        return echoed.get(30, TimeUnit.SECONDS).equals(PIECE);
    }
}
