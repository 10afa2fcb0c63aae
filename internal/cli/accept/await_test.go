// SPDX-License-Identifier: Apache-2.0

package accept

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// TestAccept_WaitOutlivesItsWatch gives each wait a series of watches, of which
// the first ones end without an answer.
func TestAccept_WaitOutlivesItsWatch(t *testing.T) {
	taken := func(b *v1alpha1.Baseline) {
		b.Spec.Authorized.Hash, b.Spec.Authorized.Number = b.Spec.Accept.Hash, 4
		b.Spec.Accept = nil
	}
	dropped := func(b *v1alpha1.Baseline) { b.Spec.Accept = nil }
	// A watch answers with an event about the changed Baseline, or fails.
	type watches func(t *testing.T, number int, current *v1alpha1.Baseline) (*watch.FakeWatcher, error)
	event := func(change func(*v1alpha1.Baseline)) watches {
		return func(_ *testing.T, _ int, current *v1alpha1.Baseline) (*watch.FakeWatcher, error) {
			change(current)
			w := watch.NewFakeWithChanSize(1, false)
			w.Modify(current)
			return w, nil
		}
	}
	cases := map[string]struct {
		series []watches
		code   int
		want   string
	}{
		"taken at once":   {[]watches{event(taken)}, 0, "shop/deployment.apps/web accepted (revision 4)\n"},
		"not taken":       {[]watches{event(dropped)}, 1, "shop/deployment.apps/web was not accepted: it changed before the request was seen"},
		"a closed watch":  {[]watches{closed, closed, event(taken)}, 0, "accepted (revision 4)\n"},
		"an old revision": {[]watches{failing(apierrors.NewResourceExpired("too old")), event(taken)}, 0, "accepted (revision 4)\n"},
		"an error event": {[]watches{func(*testing.T, int, *v1alpha1.Baseline) (*watch.FakeWatcher, error) {
			w := watch.NewFakeWithChanSize(1, false)
			w.Error(&metav1.Status{Reason: metav1.StatusReasonExpired})
			return w, nil
		}, event(taken)}, 0, "accepted (revision 4)\n"},
		"a removed Baseline": {[]watches{func(_ *testing.T, _ int, current *v1alpha1.Baseline) (*watch.FakeWatcher, error) {
			w := watch.NewFakeWithChanSize(1, false)
			w.Delete(current)
			return w, nil
		}}, 1, "its Baseline was removed meanwhile"},
		"a watch that is refused": {[]watches{failing(errors.New("no watches today"))}, 1, "acceptance is requested; waiting for it: no watches today"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			number := 0
			f := clitest.Cluster{
				Objects: []client.Object{clitest.BaselineOf("web", clitest.Drifted(clitest.Found("/spec/replicas", "1", "5", "alice", 0)))},
				Hooks: interceptor.Funcs{
					Watch: func(ctx context.Context, api client.WithWatch, _ client.ObjectList, _ ...client.ListOption) (watch.Interface, error) {
						current := &v1alpha1.Baseline{}
						if err := api.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "deployments.apps.web"}, current); err != nil {
							return nil, err
						}
						number++
						w, err := tc.series[number-1](t, number, current)
						if err != nil {
							return nil, err
						}
						return w, nil
					},
				},
			}
			got := f.Run(t, verbs, "", "accept", "deployment/web")
			if got.Code != tc.code || !strings.Contains(got.Stdout+got.Stderr, tc.want) || number != len(tc.series) {
				t.Errorf("after %d of %d watches: %+v, want %q", number, len(tc.series), got, tc.want)
			}
		})
	}
}

func closed(*testing.T, int, *v1alpha1.Baseline) (*watch.FakeWatcher, error) {
	w := watch.NewFakeWithChanSize(1, false)
	w.Stop()
	return w, nil
}

func failing(err error) func(*testing.T, int, *v1alpha1.Baseline) (*watch.FakeWatcher, error) {
	return func(*testing.T, int, *v1alpha1.Baseline) (*watch.FakeWatcher, error) { return nil, err }
}
