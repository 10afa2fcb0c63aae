// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// restarts has so many pods that have restarted.
type restarts struct {
	n     int
	asked int
	err   error
}

// CountRestarted implements Pods.
func (r *restarts) CountRestarted(context.Context, traffic.Workload, time.Time) (int, error) {
	r.asked++
	return r.n, r.err
}

// group is Deployment web with three pods, of which so many are ready.
func group(t *testing.T, ready, observed int64, number string) *unstructured.Unstructured {
	t.Helper()
	d := baseline("shop:1", 3)
	d.SetUID("u")
	d.SetGeneration(2)
	d.SetAnnotations(map[string]string{"deployment.kubernetes.io/revision": number})
	for field, n := range map[string]int64{"readyReplicas": ready, "observedGeneration": observed, "replicas": 3, "updatedReplicas": 3} {
		if err := unstructured.SetNestedField(d.Object, n, "status", field); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func TestReadGroup(t *testing.T) {
	since := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		object *unstructured.Unstructured
		since  time.Time
		want   rollout.Arm
		label  string
	}{
		"with its pods":                          {group(t, 2, 2, "7"), since, rollout.Arm{Ready: 2, Targets: 3, Updated: 3, Replicas: 3, Restarted: 1}, "u.7"},
		"without a stage no restarts are asked":  {group(t, 3, 2, "7"), time.Time{}, rollout.Arm{Ready: 3, Targets: 3, Updated: 3, Replicas: 3}, "u.7"},
		"no more are ready than there are to be": {group(t, 5, 2, "7"), time.Time{}, rollout.Arm{Ready: 3, Targets: 3, Updated: 3, Replicas: 3}, "u.7"},
		"a template that is not seen yet":        {group(t, 3, 1, "7"), time.Time{}, rollout.Arm{Ready: 3, Targets: 3, Replicas: 3}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pods := &restarts{n: 1}
			reader := &GroupReader{Live: (&api{}).serve(c.object).Live, Pods: pods}
			got, err := reader.ReadGroup(t.Context(), web("Deployment"), c.since)
			if err != nil {
				t.Fatal(err)
			}
			if got.Revision.Hash == "" || got.Revision.Label != c.label || pods.asked > 0 == c.since.IsZero() {
				t.Errorf("it is %+v, and restarts were asked for %d times", got, pods.asked)
			}
			if got.Ready != c.want.Ready || got.Targets != c.want.Targets || got.Updated != c.want.Updated || got.Replicas != c.want.Replicas || got.Restarted != c.want.Restarted {
				t.Errorf("it is %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestAGroupThatIsNotThereIsNoError(t *testing.T) {
	reader := &GroupReader{Live: (&api{}).serve().Live, Pods: &restarts{}}
	if got, err := reader.ReadGroup(t.Context(), web("Deployment"), time.Now()); err != nil || got.Revision.Hash != "" {
		t.Errorf("it is %+v: %v", got, err)
	}
	broken := &GroupReader{Live: (&api{err: errors.New("away")}).serve().Live, Pods: &restarts{}}
	if _, err := broken.ReadGroup(t.Context(), web("Deployment"), time.Now()); err == nil || !strings.Contains(err.Error(), "reading Deployment shop/web") {
		t.Errorf("the error is %v", err)
	}
	uncounted := &GroupReader{Live: (&api{}).serve(group(t, 3, 2, "7")).Live, Pods: &restarts{err: errors.New("unsynced")}}
	if _, err := uncounted.ReadGroup(t.Context(), web("Deployment"), time.Now()); err == nil || !strings.Contains(err.Error(), "have restarted") {
		t.Errorf("the error is %v", err)
	}
}

// A Deployment of the same name that was made again has another revision, whatever number that has.
func TestAGroupThatWasMadeAgainHasAnotherLabel(t *testing.T) {
	again := group(t, 3, 2, "7")
	again.SetUID("v")
	var labels []string
	for _, object := range []*unstructured.Unstructured{group(t, 3, 2, "7"), again, group(t, 3, 2, "8")} {
		got, err := (&GroupReader{Live: (&api{}).serve(object).Live, Pods: &restarts{}}).ReadGroup(t.Context(), web("Deployment"), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		labels = append(labels, got.Revision.Label)
	}
	if labels[0] == labels[1] || labels[0] == labels[2] {
		t.Errorf("the labels are %q", labels)
	}
}
