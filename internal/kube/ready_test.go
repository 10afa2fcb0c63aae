// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/readiness"
)

const rolledOut = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","uid":"u1","resourceVersion":"7","generation":3},` +
	`"spec":{"replicas":1},"status":{"observedGeneration":3,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,` +
	`"conditions":[{"type":"Available","status":"True"}]}}`

func TestDecodeTellsReadiness(t *testing.T) {
	tests := map[string]struct {
		raw  string
		want readiness.State
	}{
		"one that is rolled out":        {rolledOut, readiness.Ready},
		"one without a pod":             {strings.ReplaceAll(rolledOut, `"readyReplicas":1`, `"readyReplicas":0`), readiness.NotReady},
		"one whose body cannot be read": {strings.Replace(rolledOut, `"spec":{"replicas":1}`, `"spec":{"a":1,"a":2}`, 1), readiness.Unknown},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object, err := Decode([]byte(tc.raw), deployments)
			must(t, err)
			if object.Ready != tc.want {
				t.Errorf("it is %q, want %q", object.Ready, tc.want)
			}
		})
	}
}

func TestOnlyAnObjectThatBecomesReadyIsNews(t *testing.T) {
	s, h := newTestStore()
	at := func(rv int, state readiness.State) *Object {
		o := version("u", rv, "a")
		o.Ready = state
		return o
	}
	must(t, s.Replace([]any{at(1, readiness.NotReady)}, "1"))
	s.settle(web, s.view(web).Pending)
	for i, tc := range []struct {
		state readiness.State
		told  int
	}{
		{readiness.NotReady, 0},
		{readiness.Ready, 1},
		{readiness.Ready, 0},
		{readiness.NotReady, 0},
		{readiness.Unknown, 0},
		{readiness.Ready, 1},
	} {
		h.changed = 0
		must(t, s.Update(at(i+2, tc.state)))
		v := s.view(web)
		if h.changed != tc.told || len(v.Pending) != 0 || v.Current.Ready != tc.state {
			t.Errorf("step %d to %s: told %d times, %d pending, seen as %s", i, tc.state, h.changed, len(v.Pending), v.Current.Ready)
		}
	}
}
