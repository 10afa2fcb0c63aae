// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/executor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/discoveryserver"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
	"github.com/plumbline-dev/plumbline/test/harness/proxypod"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
	"github.com/plumbline-dev/plumbline/test/harness/seed"
)

// mesh is a discovery server with the rights that the chart gives it.
type mesh struct {
	*discoveryserver.Server
	authority []byte
}

func startMesh(t *testing.T) *mesh {
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
		if o.GetName() != "plumbline-xds" || o.GroupVersionKind().Group != "rbac.authorization.k8s.io" {
			continue
		}
		found++
		if err := admin.Create(t.Context(), o); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	if found != 4 {
		t.Fatalf("the chart gives plumbline-xds %d roles and bindings", found)
	}
	certificate, authority := envoy.NewServing(t)
	discovery := as("system:serviceaccount:" + rendered.Namespace + ":plumbline-xds")
	m := &mesh{discoveryserver.New(t, discovery, rendered.Namespace, freeport.Address(t), &certificate, inprocess.Log(t)), authority}
	lead := make(chan struct{})
	close(lead)
	m.Lead, m.Times.OldConnections = lead, time.Nanosecond // pods of tests have no connections from before
	m.Start(t, patience)
	return m
}

// sidecar is the Envoy of a client, with a local port for the Service front.
func (w *world) sidecar(m *mesh) (front string) {
	w.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: "front"}}
	w.Must(admin.Create(w.t.Context(), account))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: "client"},
		Spec:       corev1.PodSpec{ServiceAccountName: account.Name, Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	}
	proxypod.Inject(pod, inject.Redirect)
	w.Must(admin.Create(w.t.Context(), pod))
	proxypod.Place(pod)
	w.Must(admin.Status().Update(w.t.Context(), pod))
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{identity.Audience}, ExpirationSeconds: new(int64(3600)),
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	w.Must(admin.SubResource("token").Create(w.t.Context(), account, token))
	front = freeport.Address(w.t)
	port := ir.Port{Name: "http", Number: 80, Protocol: ir.HTTP}
	options := envoy.Options{Address: m.Address(), Authority: m.authority, Node: w.Name + "/" + pod.Name, Token: token.Status.Token}
	options.Listeners = append(options.Listeners, envoyxds.Local(ir.Service{Namespace: w.Name, Name: "front"}, port, netip.MustParseAddrPort(front)))
	envoy.Start(w.t, options)
	return front
}

// Answers of the target before and after its repair, and of the standby.
const (
	evilTarget = remediation.EvilImage + " web"
	goodTarget = guarded.Image + " web"
)

// driftBehind is a world in which web has drifted, and clients ask for web through an Envoy.
func driftBehind(t *testing.T, m *mesh) (w *world, f *fleet, l *load) {
	t.Helper()
	w = newWorld(t)
	w.standbyRights()
	w.UnderGuard()
	w.Drifted("web")
	f = w.fleet()
	front := w.sidecar(m)
	w.Eventually("the Envoy sends requests to the target", func() error {
		answer, err := ask(t.Context(), http.DefaultClient, front)
		if err == nil && answer != evilTarget {
			err = errors.New(answer)
		}
		return err
	})
	l = w.startLoad(front)
	l.answered(100, evilTarget)
	return w, f, l
}

// patient gives each phase of a standby time on a busy machine.
func patient(s *v1alpha1.RemediationPolicySpec) {
	s.Health.Timeout = &metav1.Duration{Duration: patience}
}

// drained waits until a standby drains, and has the time of that be over.
func (w *world) drained(plan *v1alpha1.RemediationPlan, now *inprocess.Ahead) {
	w.t.Helper()
	w.untilStandby(plan, v1alpha1.StandbyDraining)
	now.Set(time.Now().Add(2 * time.Minute))
	w.wake(plan)
}

// The assessor finds the drift, the executor repairs web behind a standby, the discovery server moves the requests,
// and an Envoy sends them. While web is repaired, no pod of web is there at all.
func TestNoRequestFailsWhileATargetIsRepairedBehindItsStandby(t *testing.T) {
	rotation.Share(t, 6) // proxies get a new variation after ten seconds, and a standby drains for fifteen
	startAssessor(t)
	w, f, l := driftBehind(t, startMesh(t))
	rollout := f.hold()
	records, now := newEvidence(t), &inprocess.Ahead{}
	startExecutor(t, records, withMesh, func(s *executor.Setup) { s.Clock = now; now.Dates(s.Config) })
	w.policy(busyWriters, blueGreen, patient)
	plan := w.onlyPlan()
	name := w.untilStandby(plan, v1alpha1.StandbyServing).Name
	w.Eventually("the repair has ended all pods of the target", func() error {
		if !rollout.ended.Load() {
			return errors.New("they run")
		}
		return nil
	})
	l.answered(100, guarded.Image+" "+name)
	close(rollout.over)
	w.drained(plan, now)
	l.answered(100, goodTarget)
	plan = w.succeeded()
	w.collected(name)
	l.answered(100, goodTarget)
	l.noneFailed()
	w.settled(1)
	w.proven(records, plan)
}

// phased says that a request stores a phase of a standby.
func phased(phase v1alpha1.StandbyPhase) func(*http.Request) bool {
	return func(r *http.Request) bool {
		if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/remediationplans/") {
			return false
		}
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		return err == nil && bytes.Contains(body, fmt.Appendf(nil, `"phase":%q`, phase))
	}
}

func TestNoRequestFailsWhenAnExecutorDiesBehindAStandby(t *testing.T) {
	if os.Getenv(seed.Long) != "1" {
		t.Skipf("%s=1 runs it", seed.Long)
	}
	startAssessor(t)
	m := startMesh(t)
	r, err := rotation.FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	phases := []v1alpha1.StandbyPhase{v1alpha1.StandbySwitching, v1alpha1.StandbyServing, v1alpha1.StandbyReturning, v1alpha1.StandbyDraining, v1alpha1.StandbyRemoving, v1alpha1.StandbyRemoved}
	for i, phase := range phases {
		stored := (i+r)%2 == 0 // two successive rotations have both
		isDrained := i > slices.Index(phases, v1alpha1.StandbyDraining)
		t.Run(fmt.Sprintf("%s, stored %t", phase, stored), func(t *testing.T) {
			w, _, l := driftBehind(t, m)
			records, now := newEvidence(t), &inprocess.Ahead{}
			clock := func(s *executor.Setup) { s.Clock = now; now.Dates(s.Config) }
			b := &blow{strikes: phased(phase), stored: stored, struck: make(chan struct{})}
			plan := w.plan(w.policy(selectsNothing, blueGreen, patient), "web", planned)
			first := startExecutor(t, records, withMesh, clock, func(s *executor.Setup) { s.Config = b.on(s.Config) })
			if isDrained {
				w.drained(plan, now)
			}
			b.await(w)
			first.Halt(t)
			l.answered(50, answerIn(w, phase))
			startExecutor(t, records, withMesh, clock)
			if !isDrained {
				w.drained(plan, now)
			}
			if plan = w.Ended(plan); plan.Status.Phase != v1alpha1.PlanSucceeded || plan.Status.Steps[0].Standby.Number != 1 {
				t.Errorf("the plan is %s, and its standby %+v", remediation.Describe(plan), plan.Status.Steps[0].Standby)
			}
			w.collected(plan.Status.Steps[0].Standby.Name)
			l.answered(50, goodTarget)
			l.noneFailed()
			w.settled(1)
			w.proven(records, plan)
		})
	}
}

// answerIn is what clients get after an executor has died at the request that stores a phase.
func answerIn(w *world, phase v1alpha1.StandbyPhase) string {
	w.t.Helper()
	switch phase {
	case v1alpha1.StandbyPreparing, v1alpha1.StandbySwitching:
		return evilTarget // the requests move after that
	case v1alpha1.StandbyServing, v1alpha1.StandbyReturning:
		var plans v1alpha1.RemediationPlanList
		w.Must(admin.List(w.t.Context(), &plans, client.InNamespace(w.Name)))
		return guarded.Image + " " + plans.Items[0].Status.Steps[0].Standby.Name
	case v1alpha1.StandbyDraining, v1alpha1.StandbyRemoving, v1alpha1.StandbyRemoved:
	}
	return goodTarget
}
