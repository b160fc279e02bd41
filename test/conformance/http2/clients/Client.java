// Java's HttpClient. Says what it has met as a line of JSON; see ../clients_test.rb.

import java.io.FileInputStream;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

public class Client {
    static final String BODY = "0123456789abcdef".repeat(4 * 65536);
    static String base;
    static HttpClient client;

    public static void main(String[] arguments) throws Exception {
        base = arguments[0];
        client = HttpClient.newBuilder().sslContext(trusting(arguments[1])).followRedirects(HttpClient.Redirect.NORMAL).build();
        System.out.printf("{\"get\": \"%s\", \"protocol\": \"%s\", \"head\": %s, \"posted\": \"%s\", \"expected\": \"%s\", \"missing\": %d, ",
            text("/"), text("/protocol"), head(), post(false), post(true), ask("/missing").statusCode());
        System.out.printf("\"moved\": \"%s\", \"large\": \"%s\", \"pieces\": \"%s\", \"events\": [%s], \"parallel\": %d}%n",
            text("/moved"), digest("/large"), digest("/pieces"), events(), parallel());
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

    static HttpResponse<String> ask(String path) throws Exception {
        return client.send(request(path).build(), BodyHandlers.ofString());
    }

    static String text(String path) throws Exception {
        return ask(path).body();
    }

    static String head() throws Exception {
        HttpRequest request = request("/").method("HEAD", BodyPublishers.noBody()).build();
        HttpResponse<String> response = client.send(request, BodyHandlers.ofString());
        String type = response.headers().firstValue("content-type").orElse("");
        return String.format("[%d, \"%s\", %d]", response.statusCode(), type, response.body().length());
    }

    static String post(boolean expects) throws Exception {
        HttpRequest request = request("/digest").expectContinue(expects).POST(BodyPublishers.ofString(BODY)).build();
        return client.send(request, BodyHandlers.ofString()).body();
    }

    static String digest(String path) throws Exception {
        byte[] body = client.send(request(path).build(), BodyHandlers.ofByteArray()).body();
        return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(body));
    }

    static String events() throws Exception {
        HttpRequest request = request("/events").header("accept", "text/event-stream").build();
        HttpResponse<Stream<String>> response = client.send(request, BodyHandlers.ofLines());
        return response.body().filter(line -> line.startsWith("data:")).map(line -> "\"" + line.substring(5).trim() + "\"")
            .collect(Collectors.joining(", "));
    }

    static long parallel() {
        List<CompletableFuture<String>> responses = IntStream.range(0, 100)
            .mapToObj(number -> client.sendAsync(request("/slow?" + number).build(), BodyHandlers.ofString()).thenApply(HttpResponse::body))
            .collect(Collectors.toList());
        return IntStream.range(0, 100).filter(number -> responses.get(number).join().equals(String.valueOf(number))).count();
    }
}
