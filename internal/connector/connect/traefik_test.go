// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

// noEndpoints is a cluster without endpoints.
type noEndpoints struct{}

func (noEndpoints) FindArms(context.Context, traffic.Split, uint16) (map[string][]netip.AddrPort, error) {
	return nil, nil
}

func (noEndpoints) FindAddresses(context.Context, types.NamespacedName, uint16) ([]netip.AddrPort, error) {
	return nil, nil
}

// traefikStand is a registry with the TrafficRouter edge, and a release that has a split in force there.
type traefikStand struct {
	*Registry
	t       *testing.T
	router  *v1alpha1.TrafficRouter
	release *v1alpha1.ABRelease
	// token is the value of the Secret; with "" the Secret cannot be read. lists is the error of lists past the cache.
	token string
	lists error
}

func newTraefikStand(t *testing.T) *traefikStand {
	t.Helper()
	kinds, err := elected.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	st := &traefikStand{t: t, token: "a-token"}
	st.router = &v1alpha1.TrafficRouter{ObjectMeta: metav1.ObjectMeta{Name: "edge", UID: "r-1", Generation: 1}, Spec: v1alpha1.TrafficRouterSpec{
		Type: v1alpha1.TrafficRouterTraefik, AllowedNamespaces: &metav1.LabelSelector{}, Traefik: &v1alpha1.TraefikRouter{
			TokenSecretRef: v1alpha1.RouterSecretKey{Name: "edge", Key: "token"},
			Programs:       []v1alpha1.TraefikProgram{{Name: "edge/traefik-0"}},
			Ports:          []v1alpha1.TraefikPort{{Namespace: "shop", ServiceName: "web", Port: 80}},
		},
	}}
	st.release = &v1alpha1.ABRelease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "autumn", UID: "u-1"},
		Spec:       v1alpha1.ABReleaseSpec{ServiceName: "web", Routers: []v1alpha1.ReleaseRouter{{Name: "edge"}}},
	}
	st.release.Status.Effective = &v1alpha1.EffectiveSplit{ServiceName: "web", Sequence: 7, Variations: []v1alpha1.EffectiveVariation{{Name: "stable", Weight: new(int32(9_000))}, {Name: "canary", Weight: new(int32(1_000))}}}
	reader := fakeclient.NewBuilder(kinds).WithStatusSubresource(&v1alpha1.ABRelease{}).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if st.lists != nil {
				return st.lists
			}
			return c.List(ctx, list, options...)
		},
	}).WithObjects(st.router, st.release, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}).Build()
	st.Registry = &Registry{
		Context: t.Context(), Client: reader, Live: reader, Endpoints: noEndpoints{}, TraefikClient: http.DefaultClient, Now: time.Now,
		Resolve: func(context.Context, notify.SecretRef) (string, error) {
			if st.token == "" {
				return "", errors.New("reading Secret edge: not found")
			}
			return st.token, nil
		},
	}
	return st
}

// pollAs returns the answer to a Traefik with a token.
func (st *traefikStand) pollAs(token string) (status int, body string) {
	st.t.Helper()
	of := st.FindProvider("edge")
	if of == nil {
		return http.StatusNotFound, ""
	}
	request := httptest.NewRequestWithContext(st.t.Context(), http.MethodGet, "/", http.NoBody)
	request.Header.Set("Authorization", "Bearer "+token)
	recorder := httptest.NewRecorder()
	of.ServeHTTP(recorder, request)
	return recorder.Code, recorder.Body.String()
}

func (st *traefikStand) prepareEdge() error {
	st.t.Helper()
	return st.PrepareTraefik(st.t.Context(), st.router)
}

// wantAnswer demands the status, and a part of the answer.
func (st *traefikStand) wantAnswer(token string, status int, part string) {
	st.t.Helper()
	if got, body := st.pollAs(token); got != status || !strings.Contains(body, part) {
		st.t.Errorf("answered is %d: %s\nwant %d with %q", got, body, status, part)
	}
}

// A leader that begins answers no Traefik before it knows all splits that are in force.
func TestATraefikGetsNoAnswerBeforeTheSplitsAreRestored(t *testing.T) {
	st := newTraefikStand(t)
	st.lists = errors.New("the API server is away")
	if err := st.prepareEdge(); !errors.Is(err, st.lists) {
		t.Errorf("preparing says %v", err)
	}
	st.wantAnswer("a-token", http.StatusServiceUnavailable, "not known yet")
	st.lists = nil
	if err := st.prepareEdge(); err != nil {
		t.Error(err)
	}
	st.wantAnswer("a-token", http.StatusOK, "plb_shop_web_80__7")
}

func TestASecretThatIsReplacedOrGone(t *testing.T) {
	st := newTraefikStand(t)
	if err := st.prepareEdge(); err != nil {
		t.Fatal(err)
	}
	st.token = ""
	if err := st.prepareEdge(); err != nil {
		t.Fatal(err)
	}
	st.wantAnswer("a-token", http.StatusOK, "plb_shop_web_80__7") // the last value counts
	st.token = "rotated"
	if err := st.prepareEdge(); err != nil {
		t.Fatal(err)
	}
	st.wantAnswer("a-token", http.StatusUnauthorized, "")
	st.wantAnswer("rotated", http.StatusOK, "plb_shop_web_80__7")
}

// A release that is connected first prepares the Traefiks, and another spec is in force at once.
func TestAReleaseConnectsWithTheSpecOfNow(t *testing.T) {
	st := newTraefikStand(t)
	router, err := st.Connect(t.Context(), st.release, "edge")
	if err != nil {
		t.Fatal(err)
	}
	if err := router.Validate(traffic.Split{}); err == nil {
		t.Error("a split of nothing is valid")
	}
	st.wantAnswer("a-token", http.StatusOK, "plb_shop_web_80__7")
	st.router.Generation, st.router.Spec.Traefik.Ports[0].Port = 2, 81
	if err := st.Client.(client.Client).Update(t.Context(), st.router); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Connect(t.Context(), st.release, "edge"); err != nil {
		t.Fatal(err)
	}
	st.wantAnswer("a-token", http.StatusOK, "plb_shop_web_81__7")
	st.Forget(client.ObjectKeyFromObject(st.release))
	st.wantAnswer("a-token", http.StatusOK, "plb_shop_web_81__undivided")
	st.DropTraefik("edge")
	st.wantAnswer("a-token", http.StatusNotFound, "")
}

func TestAnInstallationThatServesNoTraefikRefusesReleases(t *testing.T) {
	st := newTraefikStand(t)
	st.Endpoints = nil
	if _, err := st.Connect(t.Context(), st.release, "edge"); err == nil || !strings.Contains(err.Error(), "set routers.traefik.enabled") {
		t.Errorf("the error is %v", err)
	}
}
