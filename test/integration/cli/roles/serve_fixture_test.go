// SPDX-License-Identifier: Apache-2.0

//go:build integration

package roles

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/internal/serve"
	"github.com/plumbline-dev/plumbline/internal/serve/door"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/console"
	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/selfsigned"
)

// auditPolicy logs the writers of objects of Plumbline.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    verbs: [create, update, patch, delete]
    resources: [{group: plumbline.dev}]
  - level: None
`

// tokenOf is the token of the only user of a group.
func tokenOf(group string) string { return "token-of-" + nameOf(group) }

// oddNames are names of viewers that an authenticator may give.
var oddNames = []string{
	"<script>alert(1)</script>", "al\nice", "alice\x00", "\u202eecila", "a\u200dlice", " alice ", "a,b", `a"b\c`, "system:serviceaccount:::", "älice", "\x1b[31malice",
	"system:masters", "../../alice", strings.Repeat("x", 1000), `{"msg":"api.write"}`,
}

// unknownNames are names of no user.
var unknownNames = []string{"", "system:anonymous"}

// writeServerFiles writes the users with tokens, and the log of the API server.
func writeServerFiles(directory string) error {
	var file bytes.Buffer
	users := csv.NewWriter(&file)
	var failed []error
	for _, group := range []string{nobody, viewer, editor, owner, author, superuser} {
		failed = append(failed, users.Write([]string{tokenOf(group), userOf(group), "uid-of-" + nameOf(group), group}))
	}
	for i, name := range oddNames {
		failed = append(failed, users.Write([]string{"token-odd-" + strconv.Itoa(i), name, "uid-odd", viewer}))
	}
	for i, name := range unknownNames {
		failed = append(failed, users.Write([]string{"token-unknown-" + strconv.Itoa(i), name, "uid-unknown", superuser}))
	}
	users.Flush()
	return errors.Join(
		errors.Join(failed...), users.Error(), trustIssuers(filepath.Join(directory, "authentication.yaml"), "[]"),
		os.WriteFile(filepath.Join(directory, "tokens.csv"), file.Bytes(), 0o600), os.WriteFile(filepath.Join(directory, "audit.yaml"), []byte(auditPolicy), 0o600),
	)
}

func withServerFiles(directory string) apiserver.Option {
	return func(server *envtest.Environment) {
		arguments := server.ControlPlane.GetAPIServer().Configure()
		arguments.Append("token-auth-file", filepath.Join(directory, "tokens.csv"))
		arguments.Append("authentication-config", filepath.Join(directory, "authentication.yaml"))
		arguments.Append("audit-policy-file", filepath.Join(directory, "audit.yaml"))
		arguments.Append("audit-log-path", filepath.Join(directory, "audit.log"))
	}
}

// served is a REST API of the role serve, with the account that the chart gives it.
type served struct {
	base    string
	process *inprocess.Process
	clock   *inprocess.Ahead
	log     *lockedBuffer
	roots   *x509.CertPool
	// certificate is the only one of the roots.
	certificate *x509.Certificate
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(line)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// startServe runs the role until the test ends.
func startServe(t *testing.T) *served {
	t.Helper()
	return startServeFor(t, func(clock.PassiveClock) *serve.Sessions { return nil })
}

// startServeFor runs the role for browsers as well, if they have sessions.
func startServeFor(t *testing.T, sessions func(clock.PassiveClock) *serve.Sessions) *served {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	certificate := selfsigned.New(t, "plumbline-api")
	s := &served{clock: &inprocess.Ahead{}, log: &lockedBuffer{}, roots: x509.NewCertPool(), certificate: certificate.Leaf}
	s.roots.AddCert(certificate.Leaf)
	host := net.JoinHostPort("localhost", strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)) //nolint:forcetypeassert // a listener of tcp has no other address
	s.base = "https://" + host
	own, kept := serveConfig(t), sessions(s.clock)
	s.process = inprocess.Start(t, "API", patience, func(ctx context.Context, ready func()) error {
		server, err := serve.New(serve.Setup{
			Config: own, Namespace: rendered.Namespace, Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil }, Hosts: []string{host, listener.Addr().String()}, Bounds: door.DefaultBounds(),
			Sessions: kept, Version: "test", Registry: prometheus.NewRegistry(), Log: slog.New(slog.NewJSONHandler(s.log, nil)), Clock: s.clock, Ready: ready,
		})
		if err != nil {
			return err
		}
		return server.Run(ctx, listener)
	})
	return s
}

// serveConfig logs in as the account that the chart gives the role.
func serveConfig(t testing.TB) *rest.Config {
	t.Helper()
	return &rest.Config{
		Host: config.Host, BearerToken: accountToken(t, rendered.Namespace, "plumbline-api", nil), TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData},
	}
}

// as is a client with a token; an empty one is none.
func (s *served) as(t *testing.T, token string) *browser {
	t.Helper()
	connections := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.roots, MinVersion: tls.VersionTLS13}}
	b := &browser{&console.Console{Client: &http.Client{Transport: bearing{token, connections}}, Base: s.base}}
	t.Cleanup(connections.CloseIdleConnections)
	return b
}

// pass lets the time of the role pass.
func (s *served) pass(d time.Duration) { s.clock.Set(s.clock.Now().Add(d)) }

type bearing struct {
	token string
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.next.RoundTrip(r)
}

// makeAccount makes a service account of the tenant, with roles of the chart there.
func makeAccount(t *testing.T, name string, roles ...string) {
	t.Helper()
	must(t, admin.Create(t.Context(), serviceAccount(name)))
	for _, role := range roles {
		bindAccount(t, name, role)
	}
}

func serviceAccount(name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name}}
}

// issuerOf reads the issuer of a token: the audience of the API server has the same name, unless it is told another one.
func issuerOf(t *testing.T, token string) string {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	must(t, err)
	var claims struct {
		Issuer string `json:"iss"`
	}
	must(t, json.Unmarshal(raw, &claims))
	return claims.Issuer
}

// accountToken asks for a token of a service account, as a kubelet does for a pod. Without an audience it is that of the
// API server.
func accountToken(t testing.TB, namespace, name string, pod *corev1.Pod, audiences ...string) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: new(int64(3600))}}
	if pod != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	must(t, admin.SubResource("token").Create(t.Context(), account, request))
	return request.Status.Token
}

// podOf makes a pod that runs as a service account of the tenant.
func podOf(t *testing.T, name, account string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name},
		Spec:       corev1.PodSpec{ServiceAccountName: account, Containers: []corev1.Container{{Name: "a", Image: "plumbline.invalid/a"}}},
	}
	must(t, admin.Create(t.Context(), pod))
	return pod
}

// audited returns the users that wrote an object, as the audit log of the API server names them, with the program of each.
func audited(t *testing.T, resource, name string) (users []string) {
	t.Helper()
	raw, err := os.ReadFile(auditLog)
	must(t, err)
	for line := range strings.Lines(string(raw)) {
		if event := auditEvent(t, line); event.ObjectRef.Resource == resource && event.ObjectRef.Name == name && strings.HasPrefix(event.UserAgent, "plumbline-serve") {
			users = append(users, event.User.Username)
		}
	}
	return users
}
