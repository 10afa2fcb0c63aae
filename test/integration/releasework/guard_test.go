// SPDX-License-Identifier: Apache-2.0

//go:build integration

package releasework

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

const mallory = remediation.Mallory

// startAssessor starts one with the rights that the chart gives it.
func startAssessor(t *testing.T, changes ...func(*assessor.Setup)) *inprocess.Process {
	t.Helper()
	setup := assessor.Setup{
		Config: apiserver.Impersonate(config, remediation.AssessorUser), Namespace: rendered.Namespace, Retention: time.Hour,
		Executor: remediation.ExecutorUser, Rollouts: true,
		Rules:    specguard.Config{Key: []byte("a key of the tests"), Grace: 200 * time.Millisecond},
		Registry: prometheus.NewRegistry(), Log: inprocess.Log(t), Clock: clock.RealClock{},
	}
	for _, change := range changes {
		change(&setup)
	}
	return inprocess.Start(t, "assessor", patience, func(ctx context.Context, ready func()) error {
		setup.Ready = ready
		return assessor.Run(ctx, setup)
	})
}

// trusts has a guard trust users beside CI.
func trusts(users ...string) func(*v1alpha1.SpecGuard) {
	return func(g *v1alpha1.SpecGuard) {
		g.Spec.TrustedWriters.Users = append(g.Spec.TrustedWriters.Users, users...)
	}
}

// newGuardedWorld has Deployment web under a guard that trusts CI and these users, and alice may write.
func newGuardedWorld(t *testing.T, users ...string) *world {
	t.Helper()
	w := newWorld(t)
	w.mayWrite("alice")
	w.UnderGuard(trusts(users...))
	w.UntilIs("web", "InSync")
	return w
}

// authorizedBy waits until a Deployment is in sync with a state that a run authorized.
func (w *world) authorizedBy(name, user string, run int64, workName string) *v1alpha1.Baseline {
	w.t.Helper()
	return w.Until(name, fmt.Sprintf("%s is authorized by release in the name of %s", name, user), func(b *v1alpha1.Baseline) error {
		if err := guarded.Reads("InSync")(b); err != nil {
			return err
		}
		a := b.Spec.Authorized
		if a == nil || a.By != user || a.Release == nil || a.Release.Name != "web" || a.Release.Run != run || a.Release.WorkName != workName {
			return fmt.Errorf("authorized is %+v", a)
		}
		return nil
	})
}

// TestTheGuardAuthorizesWhatARunLeaves goes through two runs of a user whom the guard trusts. Each state
// that the executor leaves is authorized in the name of the user.
func TestTheGuardAuthorizesWhatARunLeaves(t *testing.T) {
	startAssessor(t)
	w := newGuardedWorld(t, "alice").releasedBy("alice")
	startExecutor(t, untouched)

	made := w.ended(w.ask(v1alpha1.WorkCreateClone, new(int32(1))), v1alpha1.WorkSucceeded, "")
	if b := w.authorizedBy("web-canary", "alice", 3, made.Name); b.Spec.Authorized.Origin != v1alpha1.OriginCreated {
		t.Errorf("the clone is %+v", b.Spec.Authorized)
	}
	scaled := w.ended(w.ask(v1alpha1.WorkScale, new(int32(2))), v1alpha1.WorkSucceeded, "")
	w.authorizedBy("web-canary", "alice", 3, scaled.Name)

	// The replicas of a clone are the run's, and another number is drift.
	w.Scale(mallory, "web-canary", 7)
	w.Until("web-canary", "the replicas are a finding", func(b *v1alpha1.Baseline) error {
		if len(b.Status.Findings) != 1 || b.Status.Findings[0].Type != v1alpha1.DriftScale {
			return fmt.Errorf("the findings are %+v", b.Status.Findings)
		}
		return nil
	})
	grown := w.ended(w.ask(v1alpha1.WorkScale, new(int32(3))), v1alpha1.WorkSucceeded, "")
	w.authorizedBy("web-canary", "alice", 3, grown.Name)

	w.run(3, "Promoting")
	updated := w.ended(w.ask(v1alpha1.WorkUpdateBaseline, nil), v1alpha1.WorkSucceeded, "")
	if b := w.authorizedBy("web", "alice", 3, updated.Name); b.Spec.Authorized.Origin != v1alpha1.OriginImported {
		t.Errorf("the origin of the baseline is %s", b.Spec.Authorized.Origin)
	}
	w.run(3, "Completed")
	ended := w.ended(w.ask(v1alpha1.WorkScale, new(int32(0))), v1alpha1.WorkSucceeded, "")
	w.authorizedBy("web-canary", "alice", 3, ended.Name)

	w.Must(admin.Get(w.Ctx(), client.ObjectKeyFromObject(w.release), w.release))
	w.release.Spec.Variations[1].Clone.Image = "registry.example/shop:3"
	w.Must(w.As("alice").Update(w.Ctx(), w.release))
	w.run(4, "Deploying")
	renewed := w.ended(w.ask(v1alpha1.WorkCreateClone, new(int32(1)), func(s *v1alpha1.ReleaseWorkSpec) { s.Run = 4 }), v1alpha1.WorkSucceeded, "")
	w.authorizedBy("web-canary", "alice", 4, renewed.Name)
}

// TestAnAssessorThatWasAwayAuthorizesTheSame: no process watched the writes of the executor.
func TestAnAssessorThatWasAwayAuthorizesTheSame(t *testing.T) {
	away := startAssessor(t)
	w := newGuardedWorld(t, "alice").releasedBy("alice")
	startExecutor(t, untouched)
	away.Halt(t)
	w.ended(w.ask(v1alpha1.WorkCreateClone, new(int32(1))), v1alpha1.WorkSucceeded, "")
	scaled := w.ended(w.ask(v1alpha1.WorkScale, new(int32(2))), v1alpha1.WorkSucceeded, "")
	w.run(3, "Promoting")
	updated := w.ended(w.ask(v1alpha1.WorkUpdateBaseline, nil), v1alpha1.WorkSucceeded, "")
	startAssessor(t)
	w.authorizedBy("web", "alice", 3, updated.Name)
	w.authorizedBy("web-canary", "alice", 3, scaled.Name)
}

// TestARunOfAUserWhomAGuardDistrustsDoesNotStart, and goes on once the guard trusts the user. A guard of
// the baseline alone counts from the first work on, since the run is to update the baseline.
func TestARunOfAUserWhomAGuardDistrustsDoesNotStart(t *testing.T) {
	startAssessor(t)
	startExecutor(t, untouched)
	selectors := map[string]*metav1.LabelSelector{
		"both Deployments":   nil,
		"the baseline alone": {MatchLabels: map[string]string{"app": "web"}},
	}
	worlds, works := map[string]*world{}, map[string]*v1alpha1.ReleaseWork{}
	for name, selector := range selectors {
		w := newWorld(t)
		w.mayWrite("alice")
		w.UnderGuard(func(g *v1alpha1.SpecGuard) { g.Spec.Selector = selector })
		w.UntilIs("web", "InSync")
		w.releasedBy("alice")
		made := w.ask(v1alpha1.WorkCreateClone, new(int32(1)))
		w.until(made, "waiting for trust", func() bool { return made.Status.Reason == v1alpha1.WorkRequesterNotTrusted })
		if m := made.Status.Message; made.Status.Phase != v1alpha1.WorkPending || !strings.Contains(m, "SpecGuard/workloads does not trust alice") || w.exists() {
			t.Errorf("a guard of %s: the work is %s: %s; the clone exists: %t", name, made.Status.Phase, m, w.exists())
		}
		worlds[name], works[name] = w, made
	}
	for _, w := range worlds {
		guard := guarded.Guard(w.Name)
		w.Must(admin.Get(w.Ctx(), client.ObjectKeyFromObject(guard), guard))
		trusts("alice")(guard)
		w.Must(admin.Update(w.Ctx(), guard))
	}
	for name, w := range worlds {
		w.ended(works[name], v1alpha1.WorkSucceeded, "")
	}
	w := worlds["both Deployments"]
	w.authorizedBy("web-canary", "alice", 3, works["both Deployments"].Name)
}

// TestATenantGetsNothingAuthorizedByTheLabelOfAWork: the tenant may write Deployments and their labels.
func TestATenantGetsNothingAuthorizedByTheLabelOfAWork(t *testing.T) {
	startAssessor(t)
	w := newGuardedWorld(t, "alice").releasedBy("alice")
	executor := startExecutor(t, untouched)
	made := w.ended(w.ask(v1alpha1.WorkCreateClone, new(int32(1))), v1alpha1.WorkSucceeded, "")
	w.authorizedBy("web-canary", "alice", 3, made.Name)
	scaled := w.ended(w.ask(v1alpha1.WorkScale, new(int32(2))), v1alpha1.WorkSucceeded, "")
	w.authorizedBy("web-canary", "alice", 3, scaled.Name)

	// The number and the label of an earlier work: a write of /scale leaves the stamp of the executor.
	w.Scale(mallory, "web-canary", 1)
	w.Patch(mallory, "web-canary", fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, v1alpha1.LabelReleaseWork, made.UID))
	b := w.Until("web-canary", "the replicas are a finding", func(b *v1alpha1.Baseline) error {
		if b.Status.State != v1alpha1.StateDrifted {
			return fmt.Errorf("it is %s", b.Status.State)
		}
		return nil
	})
	if a := b.Spec.Authorized; a.Release.WorkName != scaled.Name {
		t.Errorf("authorized is %+v", a)
	}
	w.run(3, "Promoting")
	executor.Halt(t)
	pending := w.ask(v1alpha1.WorkUpdateBaseline, nil)

	// The very change of a work that is not carried out, with its label.
	w.Patch(mallory, "web", fmt.Sprintf(`{"metadata":{"labels":{%q:%q}},"spec":{"template":{"spec":{"containers":[{"name":"app","image":%q,"env":[{"name":"MODE"}]}]}}}}`,
		v1alpha1.LabelReleaseWork, pending.UID, newImage))
	w.drifts("web")
	// Another image in the clone, under the label of the work that made it.
	w.SetImage(mallory, "web-canary", remediation.EvilImage)
	w.drifts("web-canary")
	// A Deployment of the tenant's own, as the run would make it, with the label of the clone.
	forged := w.Live("web-canary").DeepCopy()
	forged.ObjectMeta = metav1.ObjectMeta{Namespace: w.Name, Name: "web-canary-2", Labels: map[string]string{v1alpha1.LabelReleaseWork: string(made.UID)}}
	forged.Spec.Template.Spec.Containers[0].Image = newImage
	forged.Status = appsv1.DeploymentStatus{}
	w.Must(w.As(mallory).Create(w.Ctx(), forged))
	w.drifts("web-canary-2")
}

// drifts waits until a Deployment is drift by the tenant, and no run has authorized the state.
func (w *world) drifts(name string) {
	w.t.Helper()
	w.Until(name, name+" is drift by the tenant", func(b *v1alpha1.Baseline) error {
		if b.Status.State != v1alpha1.StateDrifted || len(b.Status.Findings) == 0 || b.Status.Findings[0].Actor.User != mallory {
			return fmt.Errorf("it is %s", guarded.Describe(b))
		}
		return nil
	})
}

// TestDenyRefusesForeignWritesToBothArms, and lets the works of the executor pass.
func TestDenyRefusesForeignWritesToBothArms(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.mayWrite("alice")
	guard := &v1alpha1.ClusterSpecGuard{ObjectMeta: metav1.ObjectMeta{Name: w.Name}}
	guard.Spec.GuardSpec = guarded.Guard(w.Name, trusts("alice")).Spec
	guard.Spec.Mode = v1alpha1.GuardModeDeny
	guard.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.Name}}
	w.Must(admin.Create(w.Ctx(), guard))
	t.Cleanup(func() { w.Must(admin.Delete(context.WithoutCancel(w.Ctx()), guard)) })
	w.refused("web")
	w.UntilIs("web", "InSync")
	w.releasedBy("alice")
	startExecutor(t, untouched)

	made := w.ended(w.ask(v1alpha1.WorkCreateClone, new(int32(1))), v1alpha1.WorkSucceeded, "")
	w.authorizedBy("web-canary", "alice", 3, made.Name)
	w.refused("web")
	w.refused("web-canary")
	w.run(3, "Promoting")
	updated := w.ended(w.ask(v1alpha1.WorkUpdateBaseline, nil), v1alpha1.WorkSucceeded, "")
	w.authorizedBy("web", "alice", 3, updated.Name)
	w.refused("web")
}

// refused waits until the API server refuses that the tenant changes the template of a Deployment.
func (w *world) refused(name string) {
	w.t.Helper()
	w.Eventually("the change of "+name+" is refused", func() error {
		err := w.As(mallory).Patch(w.Ctx(), w.Named(name), guarded.ImagePatch(remediation.EvilImage), client.DryRunAll)
		if (!apierrors.IsForbidden(err) && !apierrors.IsInvalid(err)) || !strings.Contains(err.Error(), "ClusterSpecGuard "+w.Name) {
			return fmt.Errorf("the answer is %v", err) //nolint:errorlint // it may be nil
		}
		return nil
	})
}
