// SPDX-License-Identifier: Apache-2.0

//go:build integration

package releasework

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// TestAUserWithTheRightGetsAClone goes through a run: the clone is made, scaled, its change reaches
// the baseline, and the clone is scaled to 0.
func TestAUserWithTheRightGetsAClone(t *testing.T) {
	w := newWorld(t)
	w.mayWrite("alice")
	w.releasedBy("alice")
	startExecutor(t, untouched)

	made := w.ended(w.ask(v1alpha1.WorkCreateClone, new(int32(1))), v1alpha1.WorkSucceeded, "")
	canary := w.Live("web-canary")
	if canary.Spec.Template.Spec.Containers[0].Image != newImage || *canary.Spec.Replicas != 1 || canary.Labels[v1alpha1.LabelReleaseWork] != string(made.UID) {
		t.Errorf("the clone is %+v", canary)
	}
	owner := metav1.GetControllerOf(canary)
	if owner == nil || owner.UID != w.release.UID || owner.BlockOwnerDeletion != nil {
		t.Errorf("the clone's owner is %+v", owner)
	}
	status := &made.Status
	if status.TemplateHash != w.hash("web-canary") || status.TargetRef == nil || status.TargetRef.UID != string(canary.UID) || !fresh(status.StartTime) || !fresh(status.EndTime) {
		t.Errorf("the status is %+v", status)
	}

	w.ended(w.ask(v1alpha1.WorkScale, new(int32(2))), v1alpha1.WorkSucceeded, "")
	if n := *w.Live("web-canary").Spec.Replicas; n != 2 {
		t.Errorf("the clone has %d replicas", n)
	}

	w.run(3, "Promoting")
	w.ended(w.ask(v1alpha1.WorkUpdateBaseline, nil), v1alpha1.WorkSucceeded, "")
	web := w.Live("web")
	if c := web.Spec.Template.Spec.Containers[0]; c.Image != newImage || len(c.Env) != 1 || c.Env[0].Name != "MODE" || *web.Spec.Replicas != 2 {
		t.Errorf("the baseline is %+v", web.Spec)
	}

	w.run(3, "Completed")
	w.ended(w.ask(v1alpha1.WorkScale, new(int32(0))), v1alpha1.WorkSucceeded, "")
	if n := *w.Live("web-canary").Spec.Replicas; n != 0 {
		t.Errorf("the clone has %d replicas after its run", n)
	}

	// The next run takes the same clone.
	w.Must(admin.Get(w.Ctx(), client.ObjectKeyFromObject(w.release), w.release))
	w.release.Spec.Variations[1].Clone.Image = "registry.example/shop:3"
	w.Must(w.As("alice").Update(w.Ctx(), w.release))
	w.run(4, "Deploying")
	w.ended(w.ask(v1alpha1.WorkCreateClone, new(int32(1)), func(s *v1alpha1.ReleaseWorkSpec) { s.Run = 4 }), v1alpha1.WorkSucceeded, "")
	again := w.Live("web-canary")
	if again.UID != canary.UID || again.Spec.Template.Spec.Containers[0].Image != "registry.example/shop:3" || *again.Spec.Replicas != 1 {
		t.Errorf("the clone of the next run is %+v", again)
	}
}

// TestAUserWithoutTheRightIsRefused: the executor has the right, and the author of the release does not.
func TestAUserWithoutTheRightIsRefused(t *testing.T) {
	w := newWorld(t).releasedBy("bob")
	startExecutor(t, untouched)
	refused := w.ended(w.ask(v1alpha1.WorkCreateClone, new(int32(1))), v1alpha1.WorkRefused, v1alpha1.WorkNotAllowed)
	if !strings.Contains(refused.Status.Message, "bob") || w.exists() {
		t.Errorf("the message is %q, the clone exists: %t", refused.Status.Message, w.exists())
	}
	w.run(3, "Promoting")
	w.ended(w.ask(v1alpha1.WorkUpdateBaseline, nil), v1alpha1.WorkRefused, v1alpha1.WorkNotAllowed)
	if image := w.Live("web").Spec.Template.Spec.Containers[0].Image; image != guarded.Image {
		t.Errorf("the baseline has %s", image)
	}
}

// TestAForgedWorkDoesNothing: a work has no body, and only the discovery server makes works.
func TestAForgedWorkDoesNothing(t *testing.T) {
	w := newWorld(t)
	w.mayWrite("alice")
	w.releasedBy("alice")
	startExecutor(t, untouched)
	forged := map[string]struct {
		change func(*v1alpha1.ReleaseWorkSpec)
		reason v1alpha1.ReleaseWorkReason
	}{
		"another release": {func(s *v1alpha1.ReleaseWorkSpec) { s.ReleaseUID = "forged" }, v1alpha1.WorkReleaseReplaced},
		"no release":      {func(s *v1alpha1.ReleaseWorkSpec) { s.ReleaseName = "none" }, v1alpha1.WorkReleaseGone},
		"another hash":    {func(s *v1alpha1.ReleaseWorkSpec) { s.ExpectedHash = "pl1:sha256:00" }, v1alpha1.WorkBaselineChanged},
		"another run":     {func(s *v1alpha1.ReleaseWorkSpec) { s.Run = 2 }, v1alpha1.WorkRunOver},
		"the baseline":    {func(s *v1alpha1.ReleaseWorkSpec) { s.Variation = "stable" }, v1alpha1.WorkInvalidSpec},
	}
	for name, tc := range forged {
		t.Run(name, func(*testing.T) {
			w.ended(w.ask(v1alpha1.WorkCreateClone, new(int32(1)), tc.change), v1alpha1.WorkRefused, tc.reason)
		})
	}
	byHand := &v1alpha1.ReleaseWork{ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: "by-hand"}, Spec: v1alpha1.ReleaseWorkSpec{
		ReleaseName: "web", ReleaseUID: string(w.release.UID), Run: 3, Number: 99, Verb: v1alpha1.WorkCreateClone, Variation: "canary",
		Replicas: new(int32(1)), ExpectedHash: w.hash("web"),
	}}
	if err := w.As("alice").Create(w.Ctx(), byHand); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "only the discovery server") {
		t.Errorf("a work by hand: %v", err)
	}
	inAnothersName := w.releaseOf("alice")
	inAnothersName.Name = "other"
	if err := w.As("mallory").Create(w.Ctx(), inAnothersName); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "set spec.rollout.requestedBy to mallory") {
		t.Errorf("a release in another's name: %v", err)
	}
	w.Must(admin.Get(w.Ctx(), client.ObjectKeyFromObject(w.release), w.release))
	w.release.Spec.Variations[1].Clone.Image = "registry.example/evil:1"
	if err := w.As("mallory").Update(w.Ctx(), w.release.DeepCopy()); !apierrors.IsForbidden(err) {
		t.Errorf("another image in alice's name: %v", err)
	}
	w.release.Spec.Variations[1].Clone.Image = newImage
	w.release.Spec.Rollout.Pause = v1alpha1.Enabled
	w.Must(w.As("mallory").Update(w.Ctx(), w.release))
	if w.exists() {
		t.Error("a forged work made a clone")
	}
}

// TestAHaltRefusesForwardWorkAlone: a scale to 0 is done all the same.
func TestAHaltRefusesForwardWorkAlone(t *testing.T) {
	w := newWorld(t)
	w.mayWrite("alice")
	w.releasedBy("alice")
	startExecutor(t, untouched)
	w.ended(w.ask(v1alpha1.WorkCreateClone, new(int32(2))), v1alpha1.WorkSucceeded, "")
	// The executor has made the ledger for the records of the clone.
	ledger := &v1alpha1.RemediationLedger{}
	w.Must(admin.Get(w.Ctx(), client.ObjectKey{Namespace: rendered.Namespace, Name: exec.ClusterLedger}, ledger))
	t.Cleanup(func() { _ = admin.Delete(context.WithoutCancel(t.Context()), ledger) })
	ledger.Spec.Halt = &v1alpha1.LedgerHalt{RequestedBy: "carol", Reason: "INC-9"}
	w.Must(w.As("carol").Update(w.Ctx(), ledger))
	refused := w.ended(w.ask(v1alpha1.WorkScale, new(int32(5))), v1alpha1.WorkRefused, v1alpha1.WorkHalted)
	if !strings.Contains(refused.Status.Message, "carol") {
		t.Errorf("the message is %q", refused.Status.Message)
	}
	w.ended(w.ask(v1alpha1.WorkScale, new(int32(0))), v1alpha1.WorkSucceeded, "")
	if n := *w.Live("web-canary").Spec.Replicas; n != 0 {
		t.Errorf("the clone has %d replicas", n)
	}
}

// TestAnExecutorWithoutABindingWaits: the owner of the namespace has not let the executor in.
func TestAnExecutorWithoutABindingWaits(t *testing.T) {
	w := newWorld(t)
	w.mayWrite("alice")
	w.releasedBy("alice")
	w.Must(admin.Delete(w.Ctx(), w.Binding()))
	w.Eventually("the executor has lost its right", func() error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: remediation.ExecutorUser, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: w.Name, Verb: "get", Group: "apps", Resource: "deployments", Name: "web",
		}}}
		if err := admin.Create(w.Ctx(), review); err != nil {
			return err
		}
		if review.Status.Allowed {
			return errors.New("it has the right")
		}
		return nil
	})
	startExecutor(t, untouched)
	made := w.ask(v1alpha1.WorkCreateClone, new(int32(1)))
	w.until(made, "Pending", func() bool { return made.Status.Phase == v1alpha1.WorkPending })
	if made.Status.Reason != v1alpha1.WorkNotAllowed || !strings.Contains(made.Status.Message, "plumbline-executor-targets") || w.exists() {
		t.Errorf("the work is %+v", made.Status)
	}
}

// TestAnExecutorThatDiesAfterItsWriteRepeatsNothing cuts the executor off when the API server has
// answered the write, and lets another one go on.
func TestAnExecutorThatDiesAfterItsWriteRepeatsNothing(t *testing.T) {
	w := newWorld(t)
	w.mayWrite("alice")
	w.releasedBy("alice")
	dead := &atomic.Bool{}
	first := startExecutor(t, func(c *rest.Config) {
		c.Wrap(func(next http.RoundTripper) http.RoundTripper { return &dyingTransport{next, dead} })
	})
	made := w.ask(v1alpha1.WorkCreateClone, new(int32(1)))
	w.Eventually("the clone is made", func() error {
		return admin.Get(w.Ctx(), client.ObjectKey{Namespace: w.Name, Name: "web-canary"}, &appsv1.Deployment{})
	})
	before := w.Live("web-canary")
	w.Must(admin.Get(w.Ctx(), client.ObjectKeyFromObject(made), made))
	if made.Status.Phase != v1alpha1.WorkRunning || made.Status.Intent == nil {
		t.Fatalf("the work is %+v, so this proves little", made.Status)
	}
	first.Halt(t)
	startExecutor(t, untouched)
	w.ended(made, v1alpha1.WorkSucceeded, "")
	if after := w.Live("web-canary"); after.UID != before.UID || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the clone was written again: version %s, then %s", before.ResourceVersion, after.ResourceVersion)
	}
}

// dyingTransport sends nothing after the first write of a Deployment.
type dyingTransport struct {
	next http.RoundTripper
	dead *atomic.Bool
}

var errDead = errors.New("the process is dead")

// RoundTrip implements http.RoundTripper.
func (t *dyingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.dead.Load() {
		return nil, errDead
	}
	if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/deployments") && r.URL.Query().Get("dryRun") == "" {
		t.dead.Store(true)
	}
	return t.next.RoundTrip(r)
}
