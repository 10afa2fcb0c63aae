// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// M9 of the guard's review: an accept took along what its hash does not name.
func TestAnAcceptLeavesIgnoredContentAsItWasAuthorized(t *testing.T) {
	w := newWorld(t)
	spec := testGuardSpec()
	spec.Ignore = []string{argsPath}
	made := w.now
	w.guard("shop", spec, made)
	w.now = w.now.Add(time.Minute)
	w.create(write{user: user("ci")}, testDeployment)
	w.observe(false, false)
	w.by("mallory", argsPath+` = ["serve","--unsafe"]`)
	w.by("alice", `/spec/template/spec/containers/[name=app]/env/[name=DEBUG] = {"name":"DEBUG","value":"1"}`)
	w.step(Present{Version: w.live, UID: w.uidText(), CreatedAt: w.createdAt, Prev: w.seen, SeenAt: w.now},
		&v1alpha1.AcceptRequest{Hash: w.state.Observed.Hash, RequestedBy: "boss"})
	if w.state.Drift != v1alpha1.StateInSync || w.state.Authorized.By != "boss" {
		t.Fatalf("accepted: %s", w.report())
	}
	spec.Ignore = nil
	w.guard("shop", spec, made)
	w.observe(false, false)
	if w.state.Drift != v1alpha1.StateDrifted || len(w.state.Findings) != 1 || w.state.Findings[0].Path != argsPath {
		t.Errorf("ignored no more: %s", w.report())
	}
}
