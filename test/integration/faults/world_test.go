// SPDX-License-Identifier: Apache-2.0

//go:build integration

package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// The users of the tests.
const (
	ci    = guarded.CI
	alice = "alice"
	bob   = "bob"
)

const (
	evilImage = "registry.example/evil:1"
	inSync    = "InSync"
	// evil is how a Baseline reads after alice changed the image.
	evil = "Drifted: Changed " + guarded.ImagePath + " by alice (Untrusted, WriterStamp)"
)

// long skips a test that takes long unless it is asked for.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("PLUMBLINE_FAULTS") != "long" {
		t.Skip("it takes long; PLUMBLINE_FAULTS=long runs it (make faults)")
	}
}

// world is a guarded namespace of a cluster.
type world struct {
	*guarded.Namespace
	t *testing.T
	c *cluster
}

func (c *cluster) newWorld(t *testing.T) *world {
	t.Helper()
	return &world{Namespace: c.NewNamespace(t), t: t, c: c}
}

// in is the world of a test within a test.
func (w *world) in(t *testing.T) *world { return &world{Namespace: w.In(t), t: t, c: w.c} }

// within is Eventually with a limit of its own.
func (w *world) within(limit time.Duration, what string, check func() error) {
	w.t.Helper()
	poll.Until(w.t, limit, what, check)
}

// assessor starts the assessor's binary without leader election, at the API
// server's own address or another one, and waits until it is ready.
func (w *world) assessor(address string, flags ...string) *server.Process {
	w.t.Helper()
	p := w.c.startProcessAt(w.t, address, "assessor", assessorUser, assessorFlags(w.t, flags...)...)
	w.ready(p)
	return p
}

// assessorFlags are those of every assessor here; later ones hold.
func assessorFlags(t *testing.T, more ...string) []string {
	t.Helper()
	return append([]string{"--leader-elect=false", "--api-server-metrics=0", "--digest-key-file=" + digestKey(t)}, more...)
}

func (w *world) ready(p *server.Process) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.Ctx(), patience)
	defer cancel()
	w.Must(p.Ready(ctx))
}

// digestKey is one key for all assessors, as the chart has it.
func digestKey(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "digest-key")
	if err := os.WriteFile(path, []byte("a digest key of the tests"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// baselineName is the Baseline of a Deployment.
func baselineName(name string) string { return specguard.BaselineName("deployments", "apps", name) }

// untilAuthorized waits until a Baseline is in sync with so many revisions.
func (w *world) untilAuthorized(name string, number int64) *v1alpha1.Baseline {
	w.t.Helper()
	return w.Until(name, fmt.Sprintf("revision %d of %s is authorized and runs", number, name), func(b *v1alpha1.Baseline) error {
		if n := guarded.Authorized(b); n != number || guarded.Describe(b) != inSync {
			return fmt.Errorf("authorized is number %d", n)
		}
		return current(b)
	})
}

// accept asks for what a Baseline shows to be authorized.
func (w *world) accept(user string, b *v1alpha1.Baseline) {
	w.t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"accept":{"hash":%q,"requestedBy":%q}}}`, b.Status.Observed.Hash, user)
	w.Must(w.As(user).Patch(w.Ctx(), b.DeepCopy(), client.RawPatch(types.MergePatchType, patch)))
}

// current says that the status is about what is authorized now: both are written
// one after the other.
func current(b *v1alpha1.Baseline) error {
	switch {
	case b.Status.ObservedGeneration != b.Generation:
		return fmt.Errorf("the status is of generation %d, the spec of %d", b.Status.ObservedGeneration, b.Generation)
	case guarded.Describe(b) == inSync && b.Status.Observed.Hash != b.Spec.Authorized.Hash:
		return fmt.Errorf("observed is %s, authorized %s", b.Status.Observed.Hash, b.Spec.Authorized.Hash)
	}
	return nil
}

// events are those about an object of the world, for one reason.
func (w *world) events(kind, name, reason string) []eventsv1.Event {
	w.t.Helper()
	var list eventsv1.EventList
	w.Must(w.c.Admin.List(w.Ctx(), &list, client.InNamespace(w.Name)))
	return slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool {
		return e.Regarding.Kind != kind || name != "" && e.Regarding.Name != name || e.Reason != reason
	})
}
