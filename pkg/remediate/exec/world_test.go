// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/storetest"
	"github.com/plumbline-dev/plumbline/pkg/readiness"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

// epoch is a Monday, 10:00 UTC.
var epoch = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

var errNetwork = errors.New("connection reset")

const (
	authorized = `{"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"shop:1","name":"app"}]}}}}`
	policyUID  = "policy-uid"
	planUID    = "plan-uid"
)

// world is an API server with one drifted Deployment "web", its Baseline, a policy,
// an Environment, and one plan that puts the Deployment back.
type world struct {
	*testing.T
	*Executor
	targets *fakeTargets
	guards  *fakeGuards
	kinds   fakeKinds
	bodies  map[string]string
	// managers are those of each revision.
	managers []metav1.ManagedFieldsEntry
	records  *fakeStore
	clock    *fakeTime
	policy   *v1alpha1.RemediationPolicy
	plan     *v1alpha1.RemediationPlan
	// fails is asked before each call of the client, e.g. "get RemediationPolicy";
	// an error is the answer.
	fails func(call, name string) error
	// mu guards what the reviews note, which the executor asks for beside each other.
	mu sync.Mutex
	// reviews are the access reviews that were asked for; deny says of one, e.g.
	// "self update deployments", that it is answered with No.
	reviews []string
	groups  []string
	deny    map[string]bool
	// calls are all writes of the client, in order.
	calls []string
	// patched are the patches of statuses.
	patched []string
	uids    int
	// stored are the phases that the observer was told of, and reasons what held the
	// plan back in each of them.
	stored  []string
	reasons []string
	ledgers []string
	// ends are the phases of the ends that the observer was told of.
	ends []string
	// verdicts are those that the observer was told of.
	verdicts []string
	// granted happens once, when the plan's place in both ledgers is stored.
	granted func()
	// ledgerStored happens once, when a ledger is stored next.
	ledgerStored func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		T: t, guards: newGuards(t), kinds: fakeKinds{}, clock: &fakeTime{now: epoch}, deny: map[string]bool{},
		records: &fakeStore{Memory: &storetest.Memory{}}, bodies: map[string]string{"web-4": authorized},
	}
	w.targets = newTargets(w)
	w.policy, w.plan = w.newPolicy(), w.newPlan()
	w.plan.Spec.Plan.Policy.Digest = planner.Digest(&w.policy.Spec)
	w.Executor = &Executor{
		Client: w.newClient(), Targets: w.targets, Kinds: w.kinds, Guards: w.guards, Bodies: fakeBodies{w}, Observer: w,
		Time: w.clock, Namespace: "plumbline-system", Holder: "executor-1",
	}
	key := newKey(t, 1)
	ring, err := evidence.NewKeyring(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	w.Evidence = &Recorder{
		Writer: evidence.Writer{Store: w.records, Signer: key, Keys: ring}, Heads: LedgerHeads{w.Executor},
		Builder: evidence.Builder{Version: "test"}, Now: w.clock.Now,
	}
	return w
}

// newKey is key number n, the same in every run.
func newKey(t *testing.T, n byte) *evidence.PrivateKey {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	key, err := evidence.ParsePrivateKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (w *world) newPolicy() *v1alpha1.RemediationPolicy {
	return &v1alpha1.RemediationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "production", UID: policyUID, Generation: 3},
		Spec: v1alpha1.RemediationPolicySpec{
			EnvironmentName: "production", Mode: v1alpha1.PolicyModeActive, RequestedBy: "platform", RequestedByGroups: []string{"sre"},
			Action: v1alpha1.ActionReconcile,
			Safety: v1alpha1.RemediationSafety{MaxConcurrent: 2, MaxPerHour: 10, MaxPerDay: 20},
			Health: v1alpha1.RemediationHealth{Stabilization: &metav1.Duration{}, Timeout: &metav1.Duration{Duration: time.Minute}},
		},
	}
}

func (w *world) newPlan() *v1alpha1.RemediationPlan {
	return &v1alpha1.RemediationPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "production-1", UID: planUID, Generation: 1},
		Spec: v1alpha1.RemediationPlanSpec{Plan: v1alpha1.PlannedRemediation{
			Policy:          v1alpha1.PlanPolicy{Name: "production", UID: policyUID, Generation: 3},
			EnvironmentName: "production", InitiatedBy: planner.InitiatedByItself, Requester: "platform", RequesterGroups: []string{"sre"},
			CorrelationID: "c-1", DriftReportID: "d-1", DeadlineTime: metav1.NewTime(epoch.Add(24 * time.Hour)),
			Targets: []v1alpha1.PlanTarget{{
				BaselineTarget: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
				BaselineName:   "deployments.apps.web", UID: "uid-web", Action: v1alpha1.ActionReconcile,
				DriftedHash: w.guards.hash(w.T, w.targets.body("web")), DesiredHash: w.guards.hash(w.T, authorized),
				Revision: "web-4", RevisionHash: w.guards.hash(w.T, authorized), Paths: []string{"/spec/replicas"},
				Severity: v1alpha1.Severity{Level: v1alpha1.SeverityHigh, Score: 65, Urgency: v1alpha1.UrgencyNormal},
			}},
			Batches: []v1alpha1.PlanBatch{{Steps: []int32{0}}},
		}},
	}
}

func (w *world) newBaseline() *v1alpha1.Baseline {
	target := w.plan.Spec.Plan.Targets[0]
	return &v1alpha1.Baseline{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: target.BaselineName},
		Spec: v1alpha1.BaselineSpec{
			Target:     target.BaselineTarget,
			Authorized: &v1alpha1.AuthorizedState{UID: "uid-web", Hash: target.RevisionHash, Revision: "web-4"},
		},
		Status: v1alpha1.BaselineStatus{Observed: v1alpha1.ObservedState{Hash: target.DriftedHash}},
	}
}

var allKinds = fakeclient.KindsOf(v1alpha1.AddToScheme, authorizationv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme)

func (w *world) newClient() client.Client {
	kinds := allKinds()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ServiceAccount"), meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"}, meta.RESTScopeRoot)
	for kind := range kinds.KnownTypes(v1alpha1.GroupVersion) {
		scope := meta.RESTScopeNamespace
		if kind == "RemediationPolicy" || kind == "Environment" {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(v1alpha1.GroupVersion.WithKind(kind), scope)
	}
	environment := &v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "production"}}
	return fakeclient.NewBuilder(kinds).WithRESTMapper(mapper).
		WithObjects(w.policy, w.plan, environment, w.newBaseline()).
		WithStatusSubresource(&v1alpha1.RemediationPlan{}, &v1alpha1.RemediationLedger{}, &v1alpha1.Baseline{}, &v1alpha1.Environment{}).
		WithInterceptorFuncs(interceptor.Funcs{Get: w.get, List: w.list, Create: w.create, SubResourceUpdate: w.updateStatus, SubResourcePatch: w.patchStatus}).
		Build()
}

func (w *world) fault(verb string, object any, name string) error {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", object), "*v1alpha1.")
	if verb != "get" && verb != "list" {
		w.calls = append(w.calls, verb+" "+kind+" "+name)
	}
	if w.fails == nil {
		return nil
	}
	return w.fails(verb+" "+kind, name)
}

// failing lets each call of a sort fail, e.g. "get RemediationPolicy".
func (w *world) failing(call string, err error) {
	w.fails = func(of, _ string) error {
		if of == call {
			return err
		}
		return nil
	}
}

func (w *world) get(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if ctx.Value(pastFaults{}) == nil {
		if err := w.fault("get", o, key.Name); err != nil {
			return err
		}
	}
	return c.Get(ctx, key, o, opts...)
}

func (w *world) list(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
	if err := w.fault("list", l, ""); err != nil {
		return err
	}
	return c.List(ctx, l, opts...)
}

func (w *world) create(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
	switch review := o.(type) {
	case *authorizationv1.SelfSubjectAccessReview:
		return w.review("self", review.Spec.ResourceAttributes, &review.Status)
	case *authorizationv1.SubjectAccessReview:
		w.mu.Lock()
		w.groups = review.Spec.Groups
		w.mu.Unlock()
		return w.review(review.Spec.User, review.Spec.ResourceAttributes, &review.Status)
	}
	if err := w.fault("create", o, o.GetName()); err != nil {
		return err
	}
	w.uids++
	o.SetUID(types.UID(fmt.Sprint("uid-", w.uids)))
	return c.Create(ctx, o, opts...)
}

func (w *world) review(who string, of *authorizationv1.ResourceAttributes, status *authorizationv1.SubjectAccessReviewStatus) error {
	asked := fmt.Sprintf("%s %s %s", who, of.Verb, of.Resource)
	w.mu.Lock()
	w.reviews = append(w.reviews, fmt.Sprintf("%s %s/%s in %s", asked, of.Group, of.Name, of.Namespace))
	w.mu.Unlock()
	if w.fails != nil {
		if err := w.fails("review "+asked, of.Name); err != nil {
			return err
		}
	}
	status.Allowed = !w.deny[asked]
	return nil
}

func (w *world) updateStatus(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
	if err := w.fault("update", o, o.GetName()); err != nil {
		return err
	}
	return c.SubResource(sub).Update(ctx, o, opts...)
}

func (w *world) patchStatus(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	if err := w.fault("patch", o, o.GetName()); err != nil {
		return err
	}
	body, err := patch.Data(o)
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	w.patched = append(w.patched, string(body))
	return c.SubResource(sub).Patch(ctx, o, patch, opts...)
}

// Stored implements Observer.
func (w *world) Stored(plan *v1alpha1.RemediationPlan, _ *v1alpha1.RemediationPlanStatus) {
	w.stored = append(w.stored, string(plan.Status.Phase))
	w.reasons = append(w.reasons, plan.Status.DeferralReason)
}

// Ended implements Observer.
func (w *world) Ended(plan *v1alpha1.RemediationPlan) {
	w.ends = append(w.ends, string(plan.Status.Phase))
}

// Assessed implements Observer.
func (w *world) Assessed(plan *v1alpha1.RemediationPlan, step int32, effect *v1alpha1.StepEffect) {
	w.verdicts = append(w.verdicts, fmt.Sprintf("%s %d %s", plan.Name, step, effect.Verdict))
}

// LedgerStored implements Observer.
func (w *world) LedgerStored(l *v1alpha1.RemediationLedger) {
	w.ledgers = append(w.ledgers, l.Name)
	if w.ledgerStored != nil {
		happens := w.ledgerStored
		w.ledgerStored = nil
		happens()
	}
	if w.granted != nil && l.Name == "production" && len(l.Status.Entries) > 0 {
		happens := w.granted
		w.granted = nil
		happens()
	}
}

func (w *world) key() types.NamespacedName { return client.ObjectKeyFromObject(w.plan) }

// carry carries the plan on once.
func (w *world) carry() Outcome {
	w.Helper()
	out, err := w.Carry(w.Context(), w.key())
	if err != nil {
		w.Fatalf("carrying the plan on: %v", err)
	}
	return out
}

// finish carries the plan to its end, or until it waits for something to happen.
func (w *world) finish() Outcome {
	w.Helper()
	for range 100 {
		out := w.carry()
		if out.Done || out.Until.IsZero() {
			return out
		}
		w.clock.now = later(w.clock.now.Add(time.Second), out.Until)
	}
	w.Fatalf("the plan never ends: %+v", w.now().Status)
	return Outcome{}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// now is the plan as it is stored now.
func (w *world) now() *v1alpha1.RemediationPlan {
	w.Helper()
	plan := &v1alpha1.RemediationPlan{}
	read(w, w.key(), plan)
	return plan
}

// pastFaults marks the context of a read that no fault meets.
type pastFaults struct{}

// read and change work past all faults.
func read(w *world, key types.NamespacedName, o client.Object) {
	w.Helper()
	if err := w.Client.Get(context.WithValue(w.Context(), pastFaults{}, true), key, o); err != nil {
		w.Fatalf("reading %T: %v", o, err)
	}
}

func change[T client.Object](w *world, key types.NamespacedName, o T, how func(T)) {
	w.Helper()
	read(w, key, o)
	how(o)
	if err := w.Client.Update(w.Context(), o); err != nil {
		w.Fatalf("changing %T: %v", o, err)
	}
}

func (w *world) changePolicy(how func(*v1alpha1.RemediationPolicy)) {
	w.Helper()
	change(w, types.NamespacedName{Name: "production"}, &v1alpha1.RemediationPolicy{}, how)
}

func (w *world) remove(o client.Object) {
	w.Helper()
	if err := w.Client.Delete(w.Context(), o); err != nil {
		w.Fatalf("removing %T: %v", o, err)
	}
}

func (w *world) readLedgerNow(name string) *v1alpha1.RemediationLedger {
	w.Helper()
	l := &v1alpha1.RemediationLedger{}
	read(w, types.NamespacedName{Namespace: w.Namespace, Name: name}, l)
	return l
}

// open is a run on the plan as it is stored.
func (w *world) open() *run {
	w.Helper()
	r, err := w.begin(w.Context(), w.key())
	if err != nil || r == nil {
		w.Fatalf("beginning a run: %v", err)
	}
	return r
}

type fakeTime struct {
	now  time.Time
	skew time.Duration
}

func (f *fakeTime) Now() time.Time      { return f.now }
func (f *fakeTime) Skew() time.Duration { return f.skew }

type fakeBodies struct{ w *world }

func (b fakeBodies) Body(_ context.Context, _, revision string) ([]byte, error) {
	body, ok := b.w.bodies[revision]
	switch {
	case !ok:
		return nil, fmt.Errorf("reading: %w", apierrors.NewNotFound(schema.GroupResource{Resource: "baselinerevisions"}, revision))
	case body == "damaged":
		return nil, fmt.Errorf("reading: %w", ErrDamaged)
	case body == "lost":
		return nil, errNetwork
	}
	return []byte(body), nil
}

func (b fakeBodies) FieldManagers(_ context.Context, _, revision string) ([]metav1.ManagedFieldsEntry, error) {
	if b.w.bodies[revision] == "lost" {
		return nil, errNetwork
	}
	return b.w.managers, nil
}

// fakeStore is a store of records that may not be ready, or not answer.
type fakeStore struct {
	*storetest.Memory
	notReady, unread error
	// hangs happens at each call while it is set, and its error is the answer: what a
	// deadline makes of a server that does not answer.
	hangs func(call string) error
}

func (s *fakeStore) hang(call string) error {
	if s.hangs == nil {
		return nil
	}
	return s.hangs(call)
}

func (s *fakeStore) Create(ctx context.Context, name string, data []byte) error {
	if err := s.hang("create"); err != nil {
		return err
	}
	return s.Memory.Create(ctx, name, data)
}

func (s *fakeStore) Read(ctx context.Context, name string) ([]byte, error) {
	if err := s.hang("read"); err != nil {
		return nil, err
	}
	if s.unread != nil {
		return nil, s.unread
	}
	return s.Memory.Read(ctx, name)
}

func (s *fakeStore) Ready(ctx context.Context) error {
	if err := s.hang("probe"); err != nil {
		return err
	}
	if s.notReady != nil {
		return s.notReady
	}
	return s.Memory.Ready(ctx)
}

// Names are those of the records alone.
func (s *fakeStore) Names() []string {
	return slices.DeleteFunc(s.Memory.Names(), func(name string) bool { _, _, ok := evidence.ParseName(name); return !ok })
}

// fakeMirror refuses what the test says.
type fakeMirror struct {
	refuses string // the name of a ledger
	asked   []string
	put     []string
}

func (m *fakeMirror) Ask(_ context.Context, l *v1alpha1.RemediationLedger, _ ledger.Request, _ ledger.Rules) (ledger.Gate, bool) {
	m.asked = append(m.asked, l.Name)
	return ledger.Gate{Name: ledger.GateHour, Message: "10 of 10 in the last hour", Until: epoch.Add(time.Hour)}, l.Name == m.refuses
}

func (m *fakeMirror) Put(_ context.Context, l *v1alpha1.RemediationLedger) {
	m.put = append(m.put, l.Name)
}

// fakeGuards are one guard of Deployments.
type fakeGuards struct {
	rules       specguard.Rules
	err         error
	frozen      map[string]string // by name of the target
	held        string
	environment string
	terminating bool
	rule        *readiness.Rule
	reads       int
}

func newGuards(t *testing.T) *fakeGuards {
	t.Helper()
	spec := v1alpha1.GuardSpec{Resources: []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}}}
	guard, errs := specguard.Compile(specguard.GuardRef{Namespace: "shop", Name: "web"}, spec, nil, time.Time{})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	set := specguard.NewGuardSet([]*specguard.Guard{guard}, nil, specguard.System{})
	rules := set.Rules(specguard.Query{Namespace: "shop", GVK: deployments, Labels: []map[string]string{{}}, Now: time.Unix(0, 0)})
	return &fakeGuards{rules: rules, environment: "production", frozen: map[string]string{}}
}

func (g *fakeGuards) hash(t *testing.T, body string) string {
	t.Helper()
	h, err := specguard.GuardedHash([]byte(body), deployments, g.rules)
	if err != nil {
		t.Fatal(err)
	}
	return string(h)
}

func (g *fakeGuards) Read(context.Context, client.Reader) (GuardView, error) {
	g.reads++
	if g.err != nil {
		return nil, g.err
	}
	return g, nil
}

func (g *fakeGuards) Rules(string, *v1alpha1.PlanTarget, map[string]string, *v1alpha1.BaselineStatus) specguard.Rules {
	return g.rules
}

func (g *fakeGuards) Frozen(_ string, target *v1alpha1.PlanTarget) string {
	return g.frozen[target.Name]
}

func (g *fakeGuards) Holds(string, *v1alpha1.Baseline, specguard.Rules, map[string]string) string {
	return g.held
}

func (g *fakeGuards) Environment(string) string { return g.environment }
func (g *fakeGuards) Terminating(string) bool   { return g.terminating }

// writes are the calls of the client that begin with a text.
func (w *world) writes(prefix string) []string {
	var out []string
	for _, call := range w.calls {
		if strings.HasPrefix(call, prefix) {
			out = append(out, call)
		}
	}
	return out
}
