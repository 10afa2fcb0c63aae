// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/executor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// withMesh starts an executor of an installation with a mesh.
func withMesh(s *executor.Setup) { s.Mesh = true }

// meshRights gives the executor what the chart gives it beside a mesh.
func meshRights(t testing.TB) {
	t.Helper()
	helm, err := rendered.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	objects, err := apiserver.Render(t.Context(), helm, "--values", "testdata/values.yaml", "--set", "mesh.enabled=true")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, o := range objects {
		if o.GetName() != "plumbline-executor-mesh" {
			continue
		}
		found++
		if err := admin.Create(t.Context(), o); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	if found != 2 {
		t.Fatalf("the chart has %d objects of the name plumbline-executor-mesh", found)
	}
}

// serve makes the managed Service front, with a ready pod of each of these Deployments.
func (w *world) serve(deployments ...string) {
	w.t.Helper()
	http := "http"
	w.Must(admin.Create(w.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: "front", Labels: map[string]string{ir.Managed: "true"}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80, AppProtocol: &http}}},
	}))
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: w.Name, Name: "front-1", Labels: map[string]string{discoveryv1.LabelServiceName: "front"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &http, Port: new(int32(8080))}},
	}
	for i, name := range deployments {
		address := fmt.Sprintf("10.9.0.%d", i+1)
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: w.Name, Name: name + "-abc-x"},
		})
		w.pod(name, address)
	}
	w.Must(admin.Create(w.t.Context(), slice))
}

// pod runs, as one of a Deployment does.
func (w *world) pod(of, address string) {
	w.t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.Name, Name: of + "-abc-x", Labels: map[string]string{"pod-template-hash": "abc"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: of + "-abc", UID: "replicas", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: guarded.Image}}},
	}
	w.Must(admin.Create(w.t.Context(), p))
	p.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	w.Must(admin.Status().Update(w.t.Context(), p))
}

// untilQuarantined waits until an object is in quarantine, and its conditions say so.
func (w *world) untilQuarantined(name string) *v1alpha1.Quarantine {
	w.t.Helper()
	return w.Until(name, "it is in quarantine", func(b *v1alpha1.Baseline) error {
		if b.Status.Quarantine == nil || !v1alpha1.IsDegradedFor(b.Status.Conditions, v1alpha1.ReasonQuarantined) {
			return fmt.Errorf("its quarantine is %v, its conditions %v", b.Status.Quarantine, b.Status.Conditions)
		}
		return nil
	}).Status.Quarantine
}

// untilReleased waits until a quarantine has ended.
func (w *world) untilReleased(name string, why v1alpha1.QuarantineEnd, by string) {
	w.t.Helper()
	w.Until(name, "its quarantine has ended", func(b *v1alpha1.Baseline) error {
		ended := b.Status.EndedQuarantine
		if b.Status.Quarantine != nil || ended == nil || ended.Reason != why || ended.By != by || v1alpha1.IsDegradedFor(b.Status.Conditions, v1alpha1.ReasonQuarantined) {
			return fmt.Errorf("its quarantine is %v, the one before %v", b.Status.Quarantine, ended)
		}
		return nil
	})
}

func (w *world) lift(by, name string, lift map[string]any) error {
	b, err := w.Baseline(name)
	if err != nil {
		return err
	}
	return w.As(by).Patch(w.t.Context(), b, patchOf(map[string]any{"spec": map[string]any{"lift": lift}}))
}

func TestAQuarantineLastsUntilTheObjectIsInSyncAgain(t *testing.T) {
	rotation.Share(t, 3)
	meshRights(t)
	startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web")
	w.serve("web", "api")
	records := newEvidence(t)
	startExecutor(t, records, withMesh)
	policy := w.policy(busyWriters, action(v1alpha1.ActionQuarantine))
	plan := w.succeeded()
	q := w.untilQuarantined("web")
	if q.Token != protocol.Token(plan, 0) || q.By != "RemediationPlan/"+plan.Name || q.UID != string(w.Live("web").UID) || imageOf(w.Live("web")) == guarded.Image {
		t.Errorf("the quarantine is %+v, and web runs %s", q, imageOf(w.Live("web")))
	}
	w.untilWaits(policy, "1 AlreadyDone")
	w.onlyPlan()
	w.SetImage(mallory, "web", guarded.Image)
	w.untilReleased("web", v1alpha1.QuarantineInSync, "")
	w.settled(1)
	w.proven(records, plan)
}

func TestAPersonLiftsAQuarantine(t *testing.T) {
	rotation.Share(t, 3)
	meshRights(t)
	startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web")
	w.serve("web", "api")
	startExecutor(t, newEvidence(t), withMesh)
	policy := w.policy(busyWriters, action(v1alpha1.ActionQuarantine))
	w.succeeded()
	q := w.untilQuarantined("web")
	if err := w.lift(platform, "web", map[string]any{"token": q.Token, "requestedBy": ci}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "spec.lift.requestedBy") {
		t.Errorf("in the name of another user: %v", err)
	}
	w.Must(w.lift(platform, "web", map[string]any{"token": "another-0", "requestedBy": platform}))
	w.Until("web", "the request for another quarantine is cleared", func(b *v1alpha1.Baseline) error {
		if b.Spec.Lift != nil || b.Status.Quarantine == nil {
			return fmt.Errorf("it asks %v, and the quarantine is %v", b.Spec.Lift, b.Status.Quarantine)
		}
		return nil
	})
	w.Must(w.lift(platform, "web", map[string]any{"token": q.Token, "requestedBy": platform}))
	w.untilReleased("web", v1alpha1.QuarantineLifted, platform)
	w.untilWaits(policy, "1 AlreadyDone")
	w.onlyPlan()
}

func TestAQuarantineIsRefusedWhen(t *testing.T) {
	rotation.Share(t, 3)
	meshRights(t)
	startAssessor(t)
	records := newEvidence(t)
	startExecutor(t, records, withMesh)
	for name, tc := range map[string]struct {
		served []string
		want   string
	}{
		"no Service serves the object":                {nil, "NotServed: "},
		"only others are behind the Service":          {[]string{"api"}, "NotServed: "},
		"it has the last ready endpoint of a Service": {[]string{"web"}, "LastReadyEndpoints: port 80 of Service front"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Rollouts()
			w.UnderGuard()
			w.Drifted("web")
			w.serve(tc.served...)
			plan := w.Ended(w.plan(w.policy(selectsNothing, action(v1alpha1.ActionQuarantine)), "web", func(p *v1alpha1.PlanTarget) { p.DesiredHash = p.DriftedHash }))
			step := plan.Status.Steps[0]
			if step.Reason != v1alpha1.ReasonRefused || !strings.HasPrefix(step.Message, tc.want) {
				t.Errorf("the plan is %s: %s", remediation.Describe(plan), step.Message)
			}
			if b, err := w.Baseline("web"); err != nil || b.Status.Quarantine != nil {
				t.Errorf("its quarantine is %v; %v", b.Status.Quarantine, err)
			}
			w.settled(0)
			w.proven(records, plan)
		})
	}
}

// blow strikes at a write: the request is lost before it is sent, or its answer.
type blow struct {
	strikes func(*http.Request) bool
	stored  bool // the API server has the request
	once    sync.Once
	struck  chan struct{}
}

// on is the configuration of an executor that the blow kills.
func (b *blow) on(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if !b.strikes(r) {
				return next.RoundTrip(r)
			}
			if b.stored {
				if answer, err := next.RoundTrip(r); err == nil {
					_ = answer.Body.Close() // it is lost
				}
			}
			b.once.Do(func() { close(b.struck) })
			<-r.Context().Done()
			return nil, errors.New("the executor is dead")
		})
	})
	return config
}

// await waits until the blow has struck.
func (b *blow) await(w *world) {
	w.t.Helper()
	w.Eventually("the executor is about to write", func() error {
		select {
		case <-b.struck:
			return nil
		default:
			return errors.New("it has not come to that")
		}
	})
}

// quarantines says that a request writes a quarantine, and not only as a dry run.
func quarantines(r *http.Request) bool {
	if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/baselines/") || r.URL.Query().Get("dryRun") != "" {
		return false
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return err == nil && bytes.Contains(body, []byte(`"quarantine":`))
}

func TestAnExecutorThatDiesOverAQuarantineIsFollowedByOneThatEndsIt(t *testing.T) {
	rotation.Share(t, 3)
	meshRights(t)
	startAssessor(t)
	for name, stored := range map[string]bool{"before the write": false, "after the write": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Rollouts()
			w.UnderGuard()
			w.Drifted("web")
			w.serve("web", "api")
			plan := w.plan(w.policy(selectsNothing, action(v1alpha1.ActionQuarantine)), "web", func(p *v1alpha1.PlanTarget) { p.DesiredHash = p.DriftedHash })
			b := &blow{strikes: quarantines, stored: stored, struck: make(chan struct{})}
			records := newEvidence(t)
			first := startExecutor(t, records, withMesh, func(s *executor.Setup) { s.Config = b.on(s.Config) })
			b.await(w)
			first.Halt(t)
			startExecutor(t, records, withMesh)
			plan = w.Ended(plan)
			step := plan.Status.Steps[0]
			want := v1alpha1.ResultResponse
			if stored {
				want = v1alpha1.ResultRecovered
			}
			if step.State != v1alpha1.StepVerified || step.Result == nil || step.Result.Origin != want {
				t.Errorf("the plan is %s: %v", remediation.Describe(plan), step.Result)
			}
			if q := w.untilQuarantined("web"); q.Token != protocol.Token(plan, 0) {
				t.Errorf("the quarantine is %+v", q)
			}
			w.settled(1)
			w.proven(records, plan)
		})
	}
}

func patchOf(change map[string]any) client.Patch {
	raw, err := json.Marshal(change)
	if err != nil {
		panic("a patch cannot be encoded: " + err.Error()) // texts always can
	}
	return client.RawPatch(types.MergePatchType, raw)
}

// The executor is not there any more: the assessor alone ends what the executor has begun.
func TestTheAssessorEndsAQuarantineWhen(t *testing.T) {
	rotation.Share(t, 3)
	startAssessor(t)
	for name, tc := range map[string]struct {
		end func(*world)
		why v1alpha1.QuarantineEnd
	}{
		"the drift is accepted": {func(w *world) {
			b, err := w.Baseline("web")
			w.Must(err)
			accept := map[string]any{"hash": b.Status.Observed.Hash, "requestedBy": platform}
			w.Must(w.As(platform).Patch(w.t.Context(), b, patchOf(map[string]any{"spec": map[string]any{"accept": accept}})))
		}, v1alpha1.QuarantineInSync},
		"the object is gone":  {func(w *world) { w.Delete(mallory, "web") }, v1alpha1.QuarantineGone},
		"no guard selects it": {func(w *world) { w.Must(admin.Delete(w.t.Context(), guarded.Guard(w.Name))) }, v1alpha1.QuarantineNotGuarded},
		"a person lifts one of a dead plan": {func(w *world) {
			w.Must(w.lift(platform, "web", map[string]any{"token": "uid-0", "requestedBy": platform}))
		}, v1alpha1.QuarantineLifted},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.UnderGuard()
			w.Drifted("web")
			b, err := w.Baseline("web")
			w.Must(err)
			quarantine := map[string]any{"startTime": metav1.Now(), "by": "RemediationPlan/p", "token": "uid-0", "uid": b.Status.Observed.UID}
			w.Must(w.As(remediation.ExecutorUser).Status().Patch(t.Context(), b, patchOf(map[string]any{"status": map[string]any{"planName": "p", "quarantine": quarantine}})))
			w.untilQuarantined("web")
			tc.end(w)
			by := ""
			if tc.why == v1alpha1.QuarantineLifted {
				by = platform
			}
			w.untilReleased("web", tc.why, by)
		})
	}
}

// Neither the executor nor the assessor may do the work of the other.
func TestWhoMayWriteAQuarantine(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	quarantine := map[string]any{"startTime": "2026-03-02T10:00:00Z", "by": "x"}
	for user, status := range map[string]map[string]any{
		remediation.ExecutorUser: {"planName": "p", "quarantine": quarantine},
		remediation.AssessorUser: {"quarantine": quarantine},
		platform:                 {"quarantine": quarantine},
	} {
		b, err := w.Baseline("web")
		w.Must(err)
		if err := w.As(user).Status().Patch(t.Context(), b, patchOf(map[string]any{"status": status})); !apierrors.IsForbidden(err) {
			t.Errorf("%s writes a quarantine of an object that is in sync: %v", user, err)
		}
	}
}
