// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/remediate/window"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

var deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

// errLost is what a process that dies during a call never sees.
var errLost = errors.New("the answer is lost")

// world is a target, its Baseline and its assessment, and a reconciler that looks at them.
type world struct {
	t      *testing.T
	client client.Client
	r      *Reconciler
	clock  *testingclock.FakePassiveClock
	skew   time.Duration

	// target as the API server has it; nil if it is gone. readFails fails each read.
	target    *appsv1.Deployment
	readFails error
	// reads and writes count the calls. lose loses the answer to the n-th write, stored or not.
	reads, writes int
	lose          func(n int) (stored, lost bool)
	// refuses is the answer to each write; nil to store it.
	refuses error
	masked  bool
	// unready is what needs the target, and is not ready; unreadyFails has that not known.
	unready      []string
	unreadyFails error
}

// Now implements Time.
func (w *world) Now() time.Time { return w.clock.Now() }

// Skew implements Time.
func (w *world) Skew() time.Duration { return w.skew }

// Get implements Getter.
func (w *world) Get(_ context.Context, ref exec.Reference) ([]byte, error) {
	w.reads++
	switch {
	case w.readFails != nil:
		return nil, w.readFails
	case w.target == nil:
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, ref.Name)
	}
	return json.Marshal(w.target)
}

func deployment(image string) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web", Generation: 7, ResourceVersion: "70"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}},
			},
		},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 7, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2, Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}, {Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		}},
	}
}

// podOfWeb is a pod of the target; ready says that its container is.
func podOfWeb(name string, ready bool) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: map[string]string{"app": "web", "pod-template-hash": "1"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "rs", Controller: new(true)}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "app", Ready: ready}}},
	}
}

// written is an assessment of a write at noon, measured from five minutes on, for half an hour.
func written(change ...func(*v1alpha1.EffectivenessAssessmentSpec)) *v1alpha1.EffectivenessAssessment {
	step := v1alpha1.PlanStep{State: v1alpha1.StepVerified, Intent: &v1alpha1.StepIntentRecord{PreHash: "drifted", StorageTime: *at(0)}, Result: &v1alpha1.StepResult{
		Hash: hashOf(deployment("shop:1")), UID: "web", Generation: 7, RecordTime: *at(0),
	}}
	a := &v1alpha1.EffectivenessAssessment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly-1-0", UID: "ea", Generation: 1},
		Spec:       specOf(planWith(nil), nil, &step),
	}
	for _, c := range change {
		c(&a.Spec)
	}
	return a
}

// hashOf is the guarded hash of an object without masks.
func hashOf(d *appsv1.Deployment) string { return string(decode(d).FullHash) }

func decode(d *appsv1.Deployment) *kube.Object {
	raw, err := json.Marshal(d)
	if err != nil {
		panic(err)
	}
	object, err := kube.Decode(raw, deployments)
	if err != nil {
		panic(err)
	}
	return object
}

var kinds = fakeclient.KindsOf(v1alpha1.AddToScheme, appsv1.AddToScheme, corev1.AddToScheme)

func newWorld(t *testing.T, a *v1alpha1.EffectivenessAssessment, objects ...client.Object) *world {
	t.Helper()
	w := &world{t: t, clock: testingclock.NewFakePassiveClock(noon), target: deployment("shop:1")}
	baseline := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployments.apps.web"}}
	objects = append(objects, a, baseline)
	w.client = fakeclient.NewBuilder(kinds()).WithObjects(objects...).WithStatusSubresource(a, baseline).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: w.patch,
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			w.reads++
			return c.List(ctx, list, options...)
		},
	}).Build()
	w.start()
	w.judge()
	return w
}

// start begins with an assessor that remembers nothing.
func (w *world) start() {
	w.t.Helper()
	metrics, err := NewMetrics(prometheus.NewRegistry(), w.Now)
	if err != nil {
		w.t.Fatal(err)
	}
	w.r = &Reconciler{
		Client: w.client, Targets: &Targets{Live: w, Cached: w.client, Clock: w.clock},
		Sources: map[v1alpha1.EffectComponent]Source{v1alpha1.ComponentHealth: &Health{Live: w.client}},
		Unready: func(context.Context, string, string) ([]string, error) { return w.unready, w.unreadyFails },
		Metrics: metrics, Time: w, Log: logr.Discard(), MaxConcurrent: 1,
	}
}

func (w *world) patch(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
	w.writes++
	if w.refuses != nil {
		return w.refuses
	}
	stored, lost := true, false
	if w.lose != nil {
		stored, lost = w.lose(w.writes)
	}
	if stored {
		if err := c.SubResource(sub).Patch(ctx, o, p, options...); err != nil {
			return err
		}
	}
	if lost {
		return errLost
	}
	return nil
}

// judge has the Baseline speak of the target as it is.
func (w *world) judge() {
	w.t.Helper()
	b := &v1alpha1.Baseline{}
	if err := w.client.Get(w.t.Context(), types.NamespacedName{Namespace: "shop", Name: "deployments.apps.web"}, b); err != nil {
		w.t.Fatal(err)
	}
	b.Status.Observed = v1alpha1.ObservedState{}
	if w.target != nil {
		object := decode(w.target)
		b.Status.Observed = v1alpha1.ObservedState{UID: string(object.UID), Hash: string(object.FullHash), FullHash: string(object.FullHash)}
		if w.masked {
			b.Status.Observed.Hash = hashOf(deployment("shop:1"))
		}
	}
	if err := w.client.Status().Update(w.t.Context(), b); err != nil {
		w.t.Fatal(err)
	}
}

var key = types.NamespacedName{Namespace: "shop", Name: "nightly-1-0"}

// look reconciles once.
func (w *world) look() (reconcile.Result, error) {
	return w.r.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: key})
}

// stored is the assessment as it is stored.
func (w *world) stored() *v1alpha1.EffectivenessAssessment {
	w.t.Helper()
	a := &v1alpha1.EffectivenessAssessment{}
	if err := w.client.Get(w.t.Context(), key, a); err != nil {
		w.t.Fatal(err)
	}
	return a
}

// maxLooks bounds one assessment: half an hour at a look each second would be more.
const maxLooks = 1_000

// run looks until the assessment has ended, each time when the look before said. A failed look is followed by a
// new assessor.
func (w *world) run() *v1alpha1.EffectivenessAssessment {
	w.t.Helper()
	for range maxLooks {
		result, err := w.look()
		if err != nil {
			w.start()
			continue
		}
		if a := w.stored(); effect.Phase(a.Status.Phase).Ended() {
			return a
		}
		if result.RequeueAfter <= 0 {
			w.t.Fatal("an assessment that has not ended is not looked at again")
		}
		w.clock.SetTime(w.clock.Now().Add(result.RequeueAfter))
	}
	w.t.Fatalf("the assessment has not ended: %+v", w.stored().Status)
	return nil
}

// until looks until the phase is reached.
func (w *world) until(phase v1alpha1.AssessmentPhase) {
	w.t.Helper()
	for range maxLooks {
		result, err := w.look()
		if err != nil {
			w.t.Fatal(err)
		}
		if w.stored().Status.Phase == phase {
			return
		}
		w.clock.SetTime(w.clock.Now().Add(result.RequeueAfter))
	}
	w.t.Fatalf("the phase %s was not reached: %+v", phase, w.stored().Status)
}

// unknownTime has the clocks not compared.
func (w *world) unknownTime() { w.skew = window.SkewUnknown }
