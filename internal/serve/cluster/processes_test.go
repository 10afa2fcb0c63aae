// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/records"
	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/internal/evidencehttp"
	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/internal/portforward"
	"github.com/plumbline-dev/plumbline/internal/serve/servetest"
)

// recorded is a world with an executor that serves an archive.
type recorded struct {
	*servetest.World
	archive *clitest.Archive
	port    *httptest.Server
	// headers are those of the requests to the port.
	headers []http.Header
}

func newRecorded(t *testing.T) *recorded {
	t.Helper()
	w := &recorded{archive: clitest.PackedArchive(t)}
	handler := evidencehttp.Handler(w.archive.Writer.Store)
	w.port = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.headers = append(w.headers, r.Header.Clone())
		handler.ServeHTTP(out, r)
	}))
	t.Cleanup(w.port.Close)
	objects := w.archive.Served()
	for _, o := range objects {
		if pod, is := o.(*corev1.Pod); is {
			at := w.port.Listener.Addr().(*net.TCPAddr) //nolint:forcetypeassert // a listener of tcp has no other address
			pod.Status.PodIP = at.IP.String()
			pod.Spec.Containers = []corev1.Container{{Name: "executor", Ports: []corev1.ContainerPort{{Name: "health", ContainerPort: int32(at.Port)}}}} //nolint:gosec // a port
		}
	}
	w.World = servetest.New(t, slog.New(slog.DiscardHandler), append(servetest.Shop(t, root), objects...)...)
	return w
}

// grants are the rights to read records.
func (w *recorded) grant(user string, but string) {
	for _, r := range []servetest.Right{
		{User: user, Verb: "list", Resource: "remediationledgers"}, {User: user, Verb: "get", Resource: "configmaps"}, {User: user, Verb: "list", Resource: "pods"}, {User: user, Verb: "get", Resource: "pods/proxy"},
	} {
		r.Namespace = actions.SystemNamespace
		w.Grant(r, r.Resource != but)
	}
}

func TestRecordsAreReadWithTheRightsOfTheCaller(t *testing.T) {
	tests := map[string]struct {
		token, but string
		words      string
	}{
		"each right": {"bob", "", ""},
		"each right, by a token that cannot write": {"screen", "", ""},
		"no right to the ledgers":                  {"bob", "remediationledgers", `cannot list resource "remediationledgers"`},
		"no right to the keys":                     {"bob", "configmaps", `cannot get resource "configmaps"`},
		"no right to find the executor":            {"bob", "pods", `cannot list resource "pods"`},
		"no right to reach the executor":           {"bob", "pods/proxy", `cannot get resource "pods/proxy"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newRecorded(t)
			w.grant("bob", tc.but)
			ctx := as(t, w.World, tc.token, false)
			archive, err := httpapi.OpenArchive(ctx, w.Cluster)
			if tc.words != "" {
				if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.words+` in API group`) || !strings.Contains(err.Error(), actions.SystemNamespace) {
					t.Errorf("got %v, want %q", err, tc.words)
				}
				if len(w.headers) > 0 {
					t.Errorf("the executor was asked %d times", len(w.headers))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			found, err := archive.Find(ctx, records.OfPlan("shop", "done"))
			if err != nil || len(found.Records) == 0 {
				t.Errorf("%d records, %v", len(found.Records), err)
			}
			for _, header := range w.headers {
				if header.Get("Authorization") != "" {
					t.Error("the executor got a token")
				}
			}
			if sent := w.Server.Sent(); len(sent) > 0 {
				t.Errorf("the API server got %+v", sent)
			}
		})
	}
}

func TestARightToRecordsEndsWithTheMemory(t *testing.T) {
	w := newRecorded(t)
	w.grant("bob", "")
	ctx := as(t, w.World, "bob", false)
	archive, err := httpapi.OpenArchive(ctx, w.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	w.grant("bob", "pods/proxy")
	w.Pass(10 * time.Second)
	if _, err := archive.Find(ctx, records.OfPlan("shop", "done")); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
	w.GoAway(true)
	w.Pass(10 * time.Second)
	var problem *wire.Problem
	if _, err := archive.Find(ctx, records.OfPlan("shop", "done")); !errors.As(err, &problem) || problem.Status != http.StatusServiceUnavailable {
		t.Errorf("a right that cannot be asked for: %v", err)
	}
}

func TestAnExecutorThatIsAwayIsNamed(t *testing.T) {
	w := newRecorded(t)
	w.port.Close()
	_, err := httpapi.OpenArchive(as(t, w.World, "alice", false), w.Cluster)
	if away, is := errors.AsType[*records.AwayError](err); !is || away.Pod != "executor-0" {
		t.Errorf("got %v", err)
	}
	if problem := httpapi.ProblemOf(slog.New(slog.DiscardHandler), err); problem.Status != http.StatusServiceUnavailable || !strings.Contains(problem.Detail, "executor-0") || strings.Contains(problem.Detail, "127.0.0.1") {
		t.Errorf("the problem is %d %q", problem.Status, problem.Detail)
	}
}

// Other pods and ConfigMaps are read with the token of the caller.
func TestTheAccountReadsTheProcessesAlone(t *testing.T) {
	tests := map[string]func(*servetest.World) error{
		"pods of another namespace": func(w *servetest.World) error {
			return w.Cluster.List(as(t, w, "alice", false), &corev1.PodList{}, client.InNamespace("shop"))
		},
		"pods of all namespaces": func(w *servetest.World) error { return w.Cluster.List(as(t, w, "alice", false), &corev1.PodList{}) },
		"another ConfigMap": func(w *servetest.World) error {
			return w.Cluster.Get(as(t, w, "alice", false), client.ObjectKey{Namespace: actions.SystemNamespace, Name: "other"}, &corev1.ConfigMap{})
		},
		"a ConfigMap of that name elsewhere": func(w *servetest.World) error {
			return w.Cluster.Get(as(t, w, "alice", false), client.ObjectKey{Namespace: "shop", Name: records.KeysConfigMap}, &corev1.ConfigMap{})
		},
		"a Pod": func(w *servetest.World) error {
			return w.Cluster.Get(as(t, w, "alice", false), client.ObjectKey{Namespace: actions.SystemNamespace, Name: "executor-0"}, &corev1.Pod{})
		},
	}
	for name, read := range tests {
		t.Run(name, func(t *testing.T) {
			w := newRecorded(t)
			_ = read(w.World) // the server stores no object
			sent := w.Server.Sent()
			if len(sent) != 1 || sent[0].Header.Get("Authorization") != "Bearer alice" {
				t.Errorf("the API server got %+v", sent)
			}
		})
	}
}

// A port is forwarded in the name of the caller.
func TestAPortIsForwardedWithTheTokenOfTheCaller(t *testing.T) {
	target := portforward.Target{Namespace: actions.SystemNamespace, Pod: "xds-0", Port: 8083}
	ask := func(w *servetest.World, token string) error {
		ctx := as(t, w, token, false)
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/proxies", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := w.Cluster.Forward(ctx, target).Do(request)
		if err == nil {
			t.Errorf("got %s", answer.Status)
			return answer.Body.Close()
		}
		return err
	}
	w := newWorld(t)
	_ = ask(w, "alice") // the server forwards no port
	sent := w.Server.Sent()
	var paths []string
	for _, s := range sent {
		paths = append(paths, s.Path)
		if got := s.Header.Values("Authorization"); !slices.Equal(got, []string{"Bearer alice"}) || s.Certificates > 0 {
			t.Errorf("%s %s is authorized by %q and %d certificates", s.Method, s.Path, got, s.Certificates)
		}
		for header, values := range s.Header {
			if strings.HasPrefix(header, "Impersonate-") || strings.Contains(strings.Join(values, " "), servetest.Identity) {
				t.Errorf("%s %s has %s: %q", s.Method, s.Path, header, values)
			}
		}
	}
	if diff := cmp.Diff("/api/v1/namespaces/plumbline-system/pods/xds-0/portforward", strings.Join(slices.Compact(paths), ",")); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	err := ask(w, "screen")
	if problem, is := errors.AsType[*wire.Problem](err); !is || problem.Type != wire.ProblemBase+string(wire.TokenAudience) || len(w.Server.Sent()) > 0 {
		t.Errorf("a token that cannot write: %v", err)
	}
}
