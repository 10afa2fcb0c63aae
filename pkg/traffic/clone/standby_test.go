// SPDX-License-Identifier: Apache-2.0

package clone_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
)

func standbyOf(t *testing.T, podLabels map[string]v1alpha1.LabelValue) *clone.Standby {
	t.Helper()
	return &clone.Standby{Name: "standby-1", ID: "plan.0.1", Replicas: 4, PodLabels: podLabels, Target: baseline(t)}
}

// TestStandbyOf_WholeBody shows all that a standby keeps of its target. No mark of a tool is among it.
func TestStandbyOf_WholeBody(t *testing.T) {
	s := standbyOf(t, map[string]v1alpha1.LabelValue{"app": "web-standby"})
	before := s.Target.DeepCopy()
	got, err := clone.StandbyOf(s)
	if err != nil {
		t.Fatal(err)
	}
	want := objectOf(t, `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: standby-1
  namespace: shop
  labels: {app: web-standby, team: shop, plumbline.dev/standby: plan.0.1}
  annotations: {owner: shop}
spec:
  replicas: 4
  futureField: {kept: true}
  selector: {matchLabels: {plumbline.dev/standby: plan.0.1}}
  template:
    metadata:
      labels: {app: web-standby, tier: front, app.kubernetes.io/instance: shop, plumbline.dev/standby: plan.0.1}
      annotations: {kubectl.kubernetes.io/restartedAt: "2026-01-02T00:00:00Z", checksum: abc}
    spec:
      initContainers:
      - {name: migrate, image: "migrate:1"}
      containers:
      - name: app
        image: shop:1
        env: [{name: FIRST, value: a}, {name: MODE, valueFrom: {configMapKeyRef: {name: c, key: m}}}, {name: LAST, value: z}]
`)
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before.Object, s.Target.Object); diff != "" {
		t.Errorf("the target changed (-before +after):\n%s", diff)
	}
}

func TestNoSelectorMatchesTheStandby(t *testing.T) {
	for name, tc := range map[string]struct {
		labels  map[string]v1alpha1.LabelValue
		service map[string]string
		want    string
	}{
		"a label of both selectors has another value":        {map[string]v1alpha1.LabelValue{"app": "web-standby"}, service, ""},
		"the Service still selects the pods":                 {map[string]v1alpha1.LabelValue{"tier": "standby"}, service, "spec.standby.podLabels: the Service front selects the pods of the standby: give another value to one of app"},
		"the target still selects the pods":                  {map[string]v1alpha1.LabelValue{"role": "standby"}, map[string]string{"role": "live"}, "spec.standby.podLabels: the selector of Deployment web selects"},
		"the Service selects by a label that the target has": {map[string]v1alpha1.LabelValue{"app": "web-standby"}, map[string]string{"tier": "front"}, "spec.standby.podLabels: the Service front selects"},
	} {
		t.Run(name, func(t *testing.T) {
			err := standbyOf(t, tc.labels).DemandUnselected("front", tc.service)
			if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
