// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestASharedStateSaysWhatItSaid(t *testing.T) {
	at := metav1.NewTime(time.Unix(1_700_000_000, 0))
	stored := func() *v1alpha1.Baseline {
		labels := map[string]string{"app": "web"}
		return &v1alpha1.Baseline{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec:       v1alpha1.BaselineSpec{Authorized: &v1alpha1.AuthorizedState{Hash: "h", AuthorizationTime: at}},
			Status: v1alpha1.BaselineStatus{
				State: v1alpha1.StateInSync, Selection: &v1alpha1.Selection{Labels: labels}, Contention: &v1alpha1.Contention{StartTime: at},
				Observed: v1alpha1.ObservedState{UID: "u", ResourceVersion: "7", Metadata: &v1alpha1.ObservedMetadata{Labels: labels}},
			},
		}
	}
	tests := map[string]struct {
		change                                      func(*State)
		authorized, selection, contention, observed bool
	}{
		"equal":                              {func(*State) {}, true, true, true, true},
		"the version alone moved":            {func(s *State) { s.Observed.ResourceVersion = "9" }, true, true, true, true},
		"another object was seen":            {func(s *State) { s.Observed.UID = "v" }, true, true, true, false},
		"another state is authorized":        {func(s *State) { s.Authorized.Hash = "g" }, false, true, true, true},
		"no state is authorized":             {func(s *State) { s.Authorized = nil }, false, true, true, true},
		"empty labels are not absent labels": {func(s *State) { s.Selection.Labels = map[string]string{} }, true, false, true, true},
		"the fight is over":                  {func(s *State) { s.Contention = nil }, true, true, false, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b, own, want := stored(), FromBaseline(stored(), nil), FromBaseline(stored(), nil)
			test.change(&own)
			test.change(&want)
			got := own.Share(b)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("the state says %+v, want %+v", got, want)
			}
			shares := [...]bool{
				got.Authorized == b.Spec.Authorized, got.Selection == b.Status.Selection,
				got.Contention == b.Status.Contention, got.Observed.Metadata == b.Status.Observed.Metadata,
			}
			if shares != [...]bool{test.authorized, test.selection, test.contention, test.observed} {
				t.Errorf("it shares %v", shares)
			}
			var status v1alpha1.BaselineStatus
			got.WriteStatus(&status)
			if status.Observed.Metadata != nil && status.Observed.Metadata == b.Status.Observed.Metadata {
				t.Error("a status that is about to be changed has the metadata of the stored one")
			}
		})
	}
}
