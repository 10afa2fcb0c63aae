// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

var configMap = client.ObjectKey{Namespace: "plumbline-system", Name: EvidenceConfigMap}

func publicPEM(t *testing.T) string {
	t.Helper()
	_, public, err := evidence.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return string(public)
}

func newPublisher(t *testing.T, hooks interceptor.Funcs, data map[string]string) *publisher {
	t.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: configMap.Namespace, Name: configMap.Name}, Data: data}
	return &publisher{
		client: fake.NewClientBuilder().WithObjects(m).WithInterceptorFuncs(hooks).Build(), namespace: configMap.Namespace,
		keys: []byte(publicPEM(t)), clock: clock.RealClock{}, log: logr.Discard(), restored: newRestored(),
	}
}

// stored is the data of the ConfigMap; change writes it as somebody else.
func (p *publisher) stored(t *testing.T) map[string]string {
	t.Helper()
	var m corev1.ConfigMap
	if err := p.client.Get(t.Context(), configMap, &m); err != nil {
		t.Fatal(err)
	}
	return m.Data
}

func (p *publisher) change(t *testing.T, how func(map[string]string)) {
	t.Helper()
	var m corev1.ConfigMap
	err := p.client.Get(t.Context(), configMap, &m)
	if err == nil {
		how(m.Data)
		err = p.client.Update(t.Context(), &m)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func endOf(chain string, last int64) evidence.KeyEnd {
	return evidence.KeyEnd{Chain: chain, Key: strings.Repeat("1", 64), Last: last, Successor: strings.Repeat("2", 64)}
}

func written(t *testing.T, ends ...evidence.KeyEnd) string {
	t.Helper()
	raw, err := json.Marshal(ends)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// The review of remediation: the keys were published once for each leadership, so that
// whoever replaced them later was not noticed.
func TestChangedKeysAreRestoredWithinAMinute(t *testing.T) {
	foreign := publicPEM(t)
	for name, how := range map[string]func(map[string]string){
		"another key in the place of the own one": func(data map[string]string) { data[EvidenceKeys] = foreign },
		"another key after the own one":           func(data map[string]string) { data[EvidenceKeys] += foreign },
		"another key in another entry":            func(data map[string]string) { data["more.pem"] = foreign },
		"no key":                                  func(data map[string]string) { delete(data, EvidenceKeys) },
		"a key that cannot be read":               func(data map[string]string) { data["more.pem"] = publicKey },
		"a later end of a key":                    func(data map[string]string) { data[EvidenceKeyEnds] = written(t, endOf("first", 9)) },
		"no end of a key":                         func(data map[string]string) { delete(data, EvidenceKeyEnds) },
		"ends of keys that cannot be read":        func(data map[string]string) { data[EvidenceKeyEnds] = "{" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPublisher(t, interceptor.Funcs{}, map[string]string{"note": "of the installation"})
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- p.Start(ctx) }()
				synctest.Wait()
				if err := p.Declare(ctx, endOf("first", 3)); err != nil {
					t.Fatal(err)
				}
				want := map[string]string{"note": "of the installation", EvidenceKeys: string(p.keys), EvidenceKeyEnds: written(t, endOf("first", 3))}
				p.change(t, how)
				<-time.After(time.Minute)
				synctest.Wait()
				if diff := cmp.Diff(want, p.stored(t)); diff != "" {
					t.Errorf("the ConfigMap (-want +got):\n%s", diff)
				}
				if n := testutil.ToFloat64(p.restored); n != 1 {
					t.Errorf("it is counted %v times", n)
				}
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestWhatIsNoChangeIsNotRestored(t *testing.T) {
	p := newPublisher(t, interceptor.Funcs{}, nil)
	own := string(p.keys)
	for name, data := range map[string]map[string]string{
		"the first start":          nil,
		"the start after another":  {EvidenceKeys: own},
		"an end that is not known": {EvidenceKeys: own, EvidenceKeyEnds: written(t, endOf("first", 3))},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPublisher(t, interceptor.Funcs{}, data)
			p.keys = []byte(own)
			for range 2 {
				if err := p.publish(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if n := testutil.ToFloat64(p.restored); n != 0 {
				t.Errorf("it is counted %v times", n)
			}
			if p.stored(t)[EvidenceKeys] != own {
				t.Error("the key is not published")
			}
		})
	}
}

func TestAForeignKeyIsToldAtTheStart(t *testing.T) {
	p := newPublisher(t, interceptor.Funcs{}, map[string]string{EvidenceKeys: publicPEM(t)})
	if err := p.publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := testutil.ToFloat64(p.restored); n != 1 {
		t.Errorf("it is counted %v times", n)
	}
}

func TestADeclaredEndStaysAndIsKnownToTheNextProcess(t *testing.T) {
	conflicts := 1
	p := newPublisher(t, interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
		if conflicts > 0 {
			conflicts--
			return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, configMap.Name, errors.New("somebody else wrote"))
		}
		return c.Update(ctx, o, options...)
	}}, nil)
	for _, end := range []evidence.KeyEnd{endOf("first", 3), endOf("second", 5), endOf("first", 9)} {
		if err := p.Declare(t.Context(), end); err != nil {
			t.Fatal(err)
		}
	}
	next := &publisher{client: p.client, namespace: p.namespace, keys: p.keys, log: logr.Discard(), restored: newRestored()}
	ends, err := next.Ends(t.Context())
	if diff := cmp.Diff([]evidence.KeyEnd{endOf("first", 3), endOf("second", 5)}, ends); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestAnEndThatCannotBeStoredIsNotDeclared(t *testing.T) {
	lost := errors.New("no answer")
	p := newPublisher(t, interceptor.Funcs{Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return lost }}, nil)
	if err := p.Declare(t.Context(), endOf("first", 3)); !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
	if p.ends != nil {
		t.Errorf("known are %v", p.ends)
	}
	if _, err := p.Ends(t.Context()); !errors.Is(err, lost) {
		t.Errorf("the ends are known without an answer: %v", err)
	}
}
