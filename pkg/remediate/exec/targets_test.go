// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// recorder answers each request with a body and a code, and keeps what was asked.
type recorder struct {
	asked []string
	code  int
	body  string
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	r.asked = append(r.asked, fmt.Sprintf("%s %s %s %s", request.Method, request.URL, request.Header.Get("Content-Type"), body))
	w.Header().Set("Content-Type", "application/json")
	if r.code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "0")
	}
	w.WriteHeader(r.code)
	_, _ = io.WriteString(w, r.body)
}

func newRESTTargets(t *testing.T, server *recorder) *RESTTargets {
	t.Helper()
	s := httptest.NewServer(server)
	t.Cleanup(s.Close)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Service"}, meta.RESTScopeNamespace)
	targets, err := NewRESTTargets(&rest.Config{Host: s.URL}, mapper)
	if err != nil {
		t.Fatal(err)
	}
	return targets
}

// A number that no float64 holds, and a field that no client knows, are sent and
// read as they are.
const exact = `{"big":9007199254740993,"unknown":{"a":1}}`

func TestATargetIsSentByteForByteWithItsBounds(t *testing.T) {
	web := Reference{GVK: deployments, Namespace: "shop", Name: "web"}
	service := Reference{GVK: canon.GVK{Version: "v1", Kind: "Service"}, Namespace: "shop", Name: "web"}
	const bounds = "fieldManager=plumbline-executor&timeout=10s application/json " + exact
	tests := map[string]struct {
		send func(Targets) ([]byte, error)
		want string
	}{
		"read": {func(s Targets) ([]byte, error) { return s.Get(t.Context(), web) }, "GET /apis/apps/v1/namespaces/shop/deployments/web?timeout=10s  "},
		"written": {
			func(s Targets) ([]byte, error) { return s.Put(t.Context(), web, []byte(exact), false) },
			"PUT /apis/apps/v1/namespaces/shop/deployments/web?" + bounds,
		},
		"tried": {
			func(s Targets) ([]byte, error) { return s.Put(t.Context(), web, []byte(exact), true) },
			"PUT /apis/apps/v1/namespaces/shop/deployments/web?dryRun=All&" + bounds,
		},
		"made": {
			func(s Targets) ([]byte, error) { return s.Post(t.Context(), web, []byte(exact), false) },
			"POST /apis/apps/v1/namespaces/shop/deployments?" + bounds,
		},
		"making it is tried": {
			func(s Targets) ([]byte, error) { return s.Post(t.Context(), web, []byte(exact), true) },
			"POST /apis/apps/v1/namespaces/shop/deployments?dryRun=All&" + bounds,
		},
		"of the core group": {
			func(s Targets) ([]byte, error) { return s.Put(t.Context(), service, []byte(exact), false) },
			"PUT /api/v1/namespaces/shop/services/web?" + bounds,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := &recorder{code: http.StatusOK, body: exact}
			got, err := test.send(newRESTTargets(t, server))
			if err != nil || string(got) != exact {
				t.Errorf("the answer is %s, %v", got, err)
			}
			if diff := cmp.Diff([]string{test.want}, server.asked); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// Whether a write is tried again is for the protocol to decide, which knows what
// came of the first one.
func TestARequestThatFailsIsNotSentAgain(t *testing.T) {
	web := Reference{GVK: deployments, Namespace: "shop", Name: "web"}
	gone := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{"name":"web","kind":"deployments"}}`
	tests := map[string]struct {
		code int
		body string
		want protocol.WriteResult
	}{
		"an object that is gone":   {http.StatusNotFound, gone, protocol.Gone},
		"a busy API server":        {http.StatusTooManyRequests, `{}`, protocol.Lost},
		"an API server that fails": {http.StatusInternalServerError, `oops`, protocol.Lost},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := &recorder{code: test.code, body: test.body}
			raw, err := newRESTTargets(t, server).Put(t.Context(), web, []byte(exact), false)
			if got := ResultOf(err); err == nil || got != test.want || raw != nil {
				t.Errorf("got %s, %v, %s", got, err, raw)
			}
			if len(server.asked) != 1 {
				t.Errorf("it was sent %d times", len(server.asked))
			}
		})
	}
}

func TestAKindThatIsNotServedIsNotAskedFor(t *testing.T) {
	server := &recorder{code: http.StatusOK, body: exact}
	targets := newRESTTargets(t, server)
	basket := Reference{GVK: canon.GVK{Group: "shop.example", Version: "v1", Kind: "Basket"}, Namespace: "shop", Name: "web"}
	for name, send := range map[string]func() ([]byte, error){
		"get":  func() ([]byte, error) { return targets.Get(t.Context(), basket) },
		"put":  func() ([]byte, error) { return targets.Put(t.Context(), basket, nil, false) },
		"post": func() ([]byte, error) { return targets.Post(t.Context(), basket, nil, false) },
	} {
		if raw, err := send(); err == nil {
			t.Errorf("%s: got %s", name, raw)
		}
	}
	if len(server.asked) > 0 {
		t.Errorf("asked was %v", server.asked)
	}
}

func TestAConfigurationThatIsNoneMakesNoTargets(t *testing.T) {
	if targets, err := NewRESTTargets(&rest.Config{Host: "http://[broken"}, meta.NewDefaultRESTMapper(nil)); err == nil {
		t.Errorf("got %+v", targets)
	}
}
