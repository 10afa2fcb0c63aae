// SPDX-License-Identifier: Apache-2.0

package repair_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/repair"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Under masks the hash of an object depends on the body that fills the masks: that
// of the authorized state, and for a rollback also that of the desired one.
func TestWhichBodyFillsTheMasks(t *testing.T) {
	earlier := strings.Replace(authorized, "shop:1", "shop:0", 1)             // the rollback leads here
	newer := strings.Replace(authorized, `"replicas":3`, `"replicas":5`, 1)   // authorized now
	moved := strings.Replace(earlier, `"replicas":3`, `"replicas":7`, 1)      // by an autoscaler, after the rollback
	underNewer := strings.Replace(earlier, `"replicas":3`, `"replicas":5`, 1) // as the authorized body fills it
	tests := map[string]struct {
		action                      v1alpha1.RemediationAction
		object, authorized, desired string
		want                        string
	}{
		"a rollback that arrived is as desired":                {v1alpha1.ActionRollback, moved, newer, earlier, earlier},
		"for a reconciliation the authorized body fills":       {v1alpha1.ActionReconcile, moved, newer, earlier, underNewer},
		"a rollback whose body was not read":                   {v1alpha1.ActionRollback, moved, newer, "", underNewer},
		"without that body it has not arrived, wherever it is": {v1alpha1.ActionRollback, earlier, newer, "", underNewer},
		"without an authorized body the desired fills":         {v1alpha1.ActionReconcile, moved, "", earlier, earlier},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := standard(t, "/spec/replicas")
			s.Authorized, s.Desired = nil, nil
			if test.authorized != "" {
				s.Authorized = []byte(test.authorized)
			}
			if test.desired != "" {
				s.Desired = []byte(test.desired)
			}
			to := target(t, test.action)
			to.DesiredHash = hash(t, earlier)
			got, err := s.Hash([]byte(test.object), to)
			if err != nil || got != hash(t, test.want) {
				t.Errorf("got %s, %v; want %s", got, err, hash(t, test.want))
			}
		})
	}
}

func TestOnlyWhatHasPodsOfItsOwnIsRestarted(t *testing.T) {
	for gvk, want := range map[canon.GVK]bool{
		{Group: "apps", Version: "v1", Kind: "Deployment"}:         true,
		{Group: "apps", Version: "v1", Kind: "StatefulSet"}:        true,
		{Group: "apps", Version: "v1", Kind: "DaemonSet"}:          true,
		{Group: "apps", Version: "v1", Kind: "ReplicaSet"}:         false,
		{Group: "shop.example", Version: "v1", Kind: "Deployment"}: false,
		{Version: "v1", Kind: "Service"}:                           false,
	} {
		s := standard(t)
		s.GVK = gvk
		_, err := repair.Write([]byte(live), target(t, v1alpha1.ActionRestart), s, marks)
		if got := !errors.Is(err, repair.ErrNotRestartable); got != want || want && err != nil {
			t.Errorf("%+v is restarted: %t, %v", gvk, got, err)
		}
	}
}

func TestWhatIsNoObjectIsNotFenced(t *testing.T) {
	for _, body := range []string{`[]`, `"web"`, `{`, ``} {
		if out, err := repair.Fence([]byte(body), deployment, marks, "41"); err == nil {
			t.Errorf("%q becomes %s", body, out)
		}
	}
}
