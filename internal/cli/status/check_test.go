// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// answering is an assessor that answers each request for a check when it is asked
// how the Baseline is, after it has found this.
func answering(f *clitest.Cluster, finds func(*v1alpha1.Baseline)) {
	f.Hooks.Patch = func(ctx context.Context, api client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
		if err := api.Patch(ctx, object, patch, options...); err != nil {
			return err
		}
		b := object.DeepCopyObject().(*v1alpha1.Baseline)
		b.Status.CheckRequested = b.Annotations[v1alpha1.AnnotationCheckRequested]
		finds(b)
		return api.Status().Update(ctx, b)
	}
}

func TestCheck_ShowsWhatTheAssessorFound(t *testing.T) {
	drifts := clitest.Drifted(clitest.Found("/spec/replicas", "1", "5", "alice", 0))
	cases := map[string]struct {
		finds func(*v1alpha1.Baseline)
		args  []string
		code  int
		want  string
	}{
		"nothing":                      {func(*v1alpha1.Baseline) {}, []string{"deployment/calm"}, 0, "✓ deployment.apps/calm     InSync"},
		"drift":                        {drifts, []string{"deployment/calm"}, 0, "✗ deployment.apps/calm     High       alice   replicas 1 → 5"},
		"drift, for a pipeline":        {drifts, []string{"deployment/calm", "--exit-code"}, 1, "1 of 1 object drifted"},
		"nothing, for a pipeline":      {func(*v1alpha1.Baseline) {}, []string{"deployment/calm", "--exit-code"}, 0, "0 of 1 object drifted"},
		"all of the namespace":         {func(*v1alpha1.Baseline) {}, []string{"--all"}, 0, "2 of 8 objects drifted, 1 missing, 2 unknown"},
		"all with nothing to be found": {func(*v1alpha1.Baseline) {}, []string{"-l", "app=none"}, 0, ""},
		"by name alone":                {func(*v1alpha1.Baseline) {}, []string{"deployment/calm", "-o", "name"}, 0, "baseline.plumbline.dev/deployments.apps.calm\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := clitest.Cluster{Objects: clitest.Fleet()}
			answering(&f, tc.finds)
			got := f.Run(t, verbs, "", append([]string{"check"}, tc.args...)...)
			if got.Code != tc.code || !strings.Contains(got.Stdout, tc.want) {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}

func TestCheck_AsksAnewEachTime(t *testing.T) {
	seen := map[string]bool{}
	f := clitest.Cluster{Objects: clitest.Fleet()}
	answering(&f, func(b *v1alpha1.Baseline) { seen[b.Status.CheckRequested] = true })
	for range 3 { // the clock of the tests stands still
		if got := f.Run(t, verbs, "", "check", "deployment/calm"); got.Code != 0 {
			t.Fatalf("got %+v", got)
		}
	}
	if len(seen) != 3 {
		t.Errorf("the values %v are not fresh", seen)
	}
	for value := range seen {
		if len(value) > 256 || !strings.HasPrefix(value, clitest.Now.Format(time.RFC3339)) {
			t.Errorf("value %q", value)
		}
	}
}

func TestCheck_Failures(t *testing.T) {
	cases := map[string]struct {
		watch func(*v1alpha1.Baseline) *watch.Event
		args  []string
		code  int
		want  string
	}{
		"no assessor": {
			args: []string{"deployment/calm", "--timeout", "20ms"}, code: 1,
			want: "error: shop/deployment.apps/calm: a check is requested, and the assessor has not answered within 20ms\n",
		},
		"no assessor, for a pipeline": {
			args: []string{"deployment/calm", "--timeout", "20ms", "--exit-code"}, code: 2, want: "has not answered within 20ms\n",
		},
		"the Baseline goes meanwhile": {
			watch: func(b *v1alpha1.Baseline) *watch.Event { return &watch.Event{Type: watch.Deleted, Object: b} },
			args:  []string{"deployment/calm"}, code: 1, want: "error: shop/deployment.apps/calm: its Baseline was removed meanwhile\n",
		},
		"an object that has no Baseline": {
			args: []string{"deployment/nope"}, code: 1, want: "error: deployment.apps/nope in namespace shop has no Baseline",
		},
		"nothing named":         {code: 1, want: "error: name objects as TYPE/NAME, or select them with --all or -l\n"},
		"named, and all":        {args: []string{"deployment/calm", "--all"}, code: 1, want: "error: --all selects in bulk and excludes TYPE/NAME\n"},
		"not waited for":        {args: []string{"deployment/calm", "--wait=false"}, want: ""},
		"a wait that cannot be": {args: []string{"deployment/calm", "--timeout=-1s"}, code: 1, want: "--timeout must be greater than 0s"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := clitest.Cluster{Objects: clitest.Fleet()}
			if tc.watch != nil {
				f.Hooks.Watch = func(ctx context.Context, api client.WithWatch, _ client.ObjectList, _ ...client.ListOption) (watch.Interface, error) {
					current := &v1alpha1.Baseline{}
					if err := api.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "deployments.apps.calm"}, current); err != nil {
						return nil, err
					}
					w := watch.NewFakeWithChanSize(1, false)
					event := tc.watch(current)
					w.Action(event.Type, event.Object)
					return w, nil
				}
			}
			got := f.Run(t, verbs, "", append([]string{"check"}, tc.args...)...)
			if got.Code != tc.code || !strings.Contains(got.Stderr, tc.want) {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
			if name == "not waited for" && got.Stdout != "shop/deployment.apps/calm check requested\n" {
				t.Errorf("got %+v", got)
			}
		})
	}
}
