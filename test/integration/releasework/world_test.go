// SPDX-License-Identifier: Apache-2.0

//go:build integration

package releasework

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

const (
	discovery = "system:serviceaccount:" + rendered.Namespace + ":plumbline-xds"
	newImage  = "registry.example/shop:2"
)

// world is a namespace with a Deployment and a Service, in which the executor may write.
type world struct {
	*remediation.World
	t       *testing.T
	xds     client.Client
	release *v1alpha1.ABRelease
	number  int64
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: remediation.NewWorld(t, cluster, auditLog), t: t}
	var err error
	w.xds, err = client.New(apiserver.Impersonate(config, discovery), client.Options{Scheme: scheme.Scheme})
	w.Must(err)
	w.Deploy(guarded.CI, "web")
	w.Must(admin.Create(w.Ctx(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: "web"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}))
	return w
}

// mayWrite gives a user the right to write Deployments of the namespace.
func (w *world) mayWrite(user string) {
	w.t.Helper()
	w.Must(admin.Create(w.Ctx(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: user},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"create", "update"}}},
	}))
	subject, role := rbacv1.Subject{Kind: rbacv1.UserKind, Name: user}, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user}
	w.Must(admin.Create(w.Ctx(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: user}, RoleRef: role, Subjects: []rbacv1.Subject{subject}}))
	w.Must(apiserver.AwaitBound(w.Ctx(), admin, subject, w.Name, role))
}

// releaseOf is a release with a clone.
func (w *world) releaseOf(author string) *v1alpha1.ABRelease {
	return &v1alpha1.ABRelease{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: "web"},
		Spec: v1alpha1.ABReleaseSpec{
			ServiceName: "web", Stable: "stable",
			Variations: []v1alpha1.Variation{
				{Name: "stable", Workload: &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: "web"}},
				{Name: "canary", Clone: &v1alpha1.VariationClone{
					Image: newImage, Env: []v1alpha1.CloneVariable{{Name: "MODE", Value: new("")}},
					PodLabels: map[string]v1alpha1.LabelValue{"app": "web-canary"},
				}},
			},
			TrafficSplit: v1alpha1.TrafficSplit{
				Type: v1alpha1.TrafficSplitPercentage, Percentages: map[string]v1alpha1.Percentage{"stable": v1alpha1.Percent(100), "canary": v1alpha1.Percent(0)},
			},
			Rollout: &v1alpha1.Rollout{StrategyName: "any", Promotion: v1alpha1.PromotionUpdateBaseline, RequestedBy: author},
		},
	}
}

// releasedBy makes a release in the name of its author, and begins run 3 of it.
func (w *world) releasedBy(author string) *world {
	w.t.Helper()
	w.release = w.releaseOf(author)
	w.Must(w.As(author).Create(w.Ctx(), w.release))
	w.t.Cleanup(func() { // the executors of later tests record nothing of it
		if err := admin.Delete(context.WithoutCancel(w.t.Context()), w.release); client.IgnoreNotFound(err) != nil {
			w.t.Errorf("deleting the release: %v", err)
		}
	})
	w.run(3, "Running")
	return w
}

// run writes the status as the discovery server does.
func (w *world) run(number int64, state v1alpha1.RunState) {
	w.t.Helper()
	w.Must(w.xds.Get(w.Ctx(), client.ObjectKeyFromObject(w.release), w.release))
	percent, to := v1alpha1.Percent(100), "b"
	if w.exists() {
		to = w.hash("web-canary")
	}
	w.release.Status.Rollout = &v1alpha1.RolloutStatus{Run: &v1alpha1.RolloutRun{
		Number: number, State: state, From: v1alpha1.VariationRevision{Variation: "stable", Hash: "a"}, To: v1alpha1.VariationRevision{Variation: "canary", Hash: to},
		AutoAdvance: v1alpha1.Enabled, RollbackOnFailure: v1alpha1.Enabled, HealthCheckIntervalSeconds: 30, StartTime: metav1.Now(),
		Stages: []v1alpha1.RolloutStageStatus{{
			Number: 1, State: "Running", TrafficPercentage: &percent, DurationSeconds: new(int64(0)), HealthThreshold: &percent, RequireApproval: v1alpha1.Disabled,
		}},
	}}
	w.Must(w.xds.Status().Update(w.Ctx(), w.release))
}

// ask makes a work, as the discovery server does.
func (w *world) ask(verb v1alpha1.ReleaseWorkVerb, replicas *int32, changes ...func(*v1alpha1.ReleaseWorkSpec)) *v1alpha1.ReleaseWork {
	w.t.Helper()
	w.number++
	made := &v1alpha1.ReleaseWork{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: fmt.Sprintf("web-%d", w.number)},
		Spec: v1alpha1.ReleaseWorkSpec{
			ReleaseName: "web", ReleaseUID: string(w.release.UID), Run: 3, Number: w.number, Verb: verb, Variation: "canary",
			Replicas: replicas, ExpectedHash: w.hash("web"),
		},
	}
	for _, change := range changes {
		change(&made.Spec)
	}
	w.Must(w.xds.Create(w.Ctx(), made))
	return made
}

// ended waits for the end of a work.
func (w *world) ended(made *v1alpha1.ReleaseWork, phase v1alpha1.ReleaseWorkPhase, reason v1alpha1.ReleaseWorkReason) *v1alpha1.ReleaseWork {
	w.t.Helper()
	w.until(made, string(phase), func() bool { return work.Final(made.Status.Phase) })
	if made.Status.Phase != phase || made.Status.Reason != reason {
		w.t.Fatalf("%s ended as %+v", made.Spec.Verb, made.Status)
	}
	return made
}

func (w *world) until(made *v1alpha1.ReleaseWork, what string, is func() bool) {
	w.t.Helper()
	w.Eventually("the work "+made.Name+" is "+what, func() error {
		if err := admin.Get(w.Ctx(), client.ObjectKeyFromObject(made), made); err != nil {
			return err
		}
		if !is() {
			return fmt.Errorf("it is %+v", made.Status)
		}
		return nil
	})
}

// hash is that of a Deployment's pod template.
func (w *world) hash(name string) string {
	w.t.Helper()
	live := &unstructured.Unstructured{}
	live.SetAPIVersion("apps/v1")
	live.SetKind("Deployment")
	w.Must(admin.Get(w.Ctx(), client.ObjectKey{Namespace: w.Name, Name: name}, live))
	hash, err := clone.TemplateHash(live)
	w.Must(err)
	return hash
}

// exists says whether the clone is there.
func (w *world) exists() bool {
	w.t.Helper()
	err := admin.Get(w.Ctx(), client.ObjectKey{Namespace: w.Name, Name: "web-canary"}, &appsv1.Deployment{})
	w.Must(client.IgnoreNotFound(err))
	return err == nil
}

// startExecutor starts one with the rights that the chart gives it, and with a store of its own.
func startExecutor(t *testing.T, wrap func(*rest.Config)) *inprocess.Process {
	t.Helper()
	return newRecords(t).startExecutor(t, wrap)
}

func untouched(*rest.Config) {}

// fresh is a time that is not long ago.
func fresh(at *metav1.Time) bool { return at != nil && time.Since(at.Time) < 5*time.Minute }
