// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

var deploymentGVK = canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}

const driftedSpec = `{"replicas":5,"template":{"spec":{"containers":[{"env":[{"name":"API_TOKEN","value":"old-secret"}],"image":"nginx:1.28","name":"app"}]}}}`

// targets answers dry runs: what is put is stored, unless put says otherwise.
type targets struct {
	live string
	put  func(body []byte) ([]byte, error)
}

func (t targets) Get(_ context.Context, ref exec.Reference) ([]byte, error) {
	if t.live == "" {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: ref.Group, Resource: "deployments"}, ref.Name)
	}
	return []byte(t.live), nil
}

func (targets) Patch(context.Context, exec.Reference, []byte) ([]byte, error) {
	return nil, errors.New("a preview patches no object")
}

func (t targets) Put(_ context.Context, _ exec.Reference, body []byte, dryRun bool) ([]byte, error) {
	if !dryRun {
		return nil, errors.New("a preview must not write")
	}
	if t.put != nil {
		return t.put(body)
	}
	return body, nil
}

func (t targets) Post(ctx context.Context, ref exec.Reference, body []byte, dryRun bool) ([]byte, error) {
	return t.Put(ctx, ref, body, dryRun)
}

// shop is a namespace with a drifted Deployment under guard, and a policy about it.
func shop(t *testing.T, change ...func(*v1alpha1.RemediationPolicy)) fakeCluster {
	t.Helper()
	live := liveBody(t, driftedSpec)
	hash := func(body string) string {
		h, err := canon.HashBody([]byte(body), deploymentGVK)
		must(t, err)
		return string(h)
	}
	authorized := hash(liveBody(t, authorizedSpec))
	web := baselineOf("web", drifted(found("/spec/replicas", "1", "5", "bob", time.Hour), found("/spec/template/spec/containers/[name=app]/image", `"nginx:1.27"`, `"nginx:1.28"`, "bob", time.Hour)), func(b *v1alpha1.Baseline) {
		b.Spec.Authorized.Hash, b.Spec.Authorized.Revision = authorized, "deployments.apps.web-3"
		b.Status.Observed = v1alpha1.ObservedState{Hash: hash(live), FullHash: hash(live), UID: "u"}
		b.Status.Severity.Urgency = v1alpha1.UrgencyNormal
		b.Status.Severity.Factors = []v1alpha1.SeverityFactor{{Name: "DriftType", Score: 80, Weight: 30}, {Name: "DriftAge", Score: 50, Weight: 25}}
	})
	revision := revisionOf(t, web, 3, `{"spec":`+authorizedSpec+`}`)
	revision.Spec.Hash = authorized
	object := &unstructured.Unstructured{}
	must(t, json.Unmarshal([]byte(live), &object.Object))
	object.SetNamespace("shop")
	object.SetResourceVersion("")
	named := metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "shop"}}
	objects := []client.Object{
		web, revision, object, policyOf("production", change...), baselineOf("calm"),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: named.MatchLabels}},
		&v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "production"}, Spec: v1alpha1.EnvironmentSpec{Criticality: v1alpha1.CriticalityProduction, NamespaceSelector: named}},
		&v1alpha1.SpecGuard{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "apps"},
			Spec:       v1alpha1.GuardSpec{Resources: []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}}},
		},
	}
	return fakeCluster{objects: objects, live: map[string]string{"web": live}, targets: targets{live: live}}
}

// vanished is the shop after bob deleted the Deployment, which had two owners.
func vanished(t *testing.T, change ...func(*v1alpha1.RemediationPolicy)) fakeCluster {
	t.Helper()
	f := shop(t, append(change, func(p *v1alpha1.RemediationPolicy) { p.Spec.Exceptions.Recreate = v1alpha1.Allowed })...)
	f.objects = slices.DeleteFunc(f.objects, func(o client.Object) bool {
		_, live := o.(*unstructured.Unstructured)
		return live
	})
	for _, o := range f.objects {
		switch o := o.(type) {
		case *v1alpha1.Baseline:
			if o.Spec.Target.Name != "web" {
				continue
			}
			o.Status.State = v1alpha1.StateMissing
			o.Status.Observed = v1alpha1.ObservedState{UID: "u", Hash: specguard.HashAbsent, Metadata: &v1alpha1.ObservedMetadata{
				OwnerReferences: []v1alpha1.ObservedOwner{
					{APIVersion: "apps/v1", Kind: "Deployment", Name: "parent", UID: "uid-parent", Controller: v1alpha1.Enabled},
					{APIVersion: "apps/v1", Kind: "Deployment", Name: "gone", UID: "uid-gone"},
				},
			}}
			gone := found("", "", "", "bob", time.Hour)
			gone.Class, gone.Type = v1alpha1.ClassObjectMissing, v1alpha1.DriftMissing
			o.Status.Findings, o.Status.FindingsTotal = []v1alpha1.Finding{gone}, 1
		case *v1alpha1.SpecGuard:
			o.Spec.ResyncPeriod = &metav1.Duration{Duration: time.Hour}
		}
	}
	parent := &unstructured.Unstructured{}
	parent.SetGroupVersionKind(schema.GroupVersionKind(deploymentGVK))
	parent.SetNamespace("shop")
	parent.SetName("parent")
	parent.SetUID("uid-parent")
	f.objects = append(f.objects, parent)
	f.targets.live = ""
	return f
}

func TestWhatIsMadeAgainIsToldBeforeItIs(t *testing.T) {
	for name, args := range map[string][]string{
		"preview/recreates": {"plan", "preview", "production"},
		"explain/recreates": {"policy", "explain", "production"},
	} {
		t.Run(name, func(t *testing.T) {
			f := vanished(t, activeBy("alice"))
			f.targets.put = func(body []byte) ([]byte, error) {
				var made metav1.PartialObjectMetadata
				must(t, json.Unmarshal(body, &made))
				want := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "parent", UID: "uid-parent", Controller: new(true)}}
				if diff := cmp.Diff(want, made.OwnerReferences); diff != "" {
					t.Errorf("its owners (-want +got):\n%s", diff)
				}
				return body, nil
			}
			got := f.run(t, "", args...)
			if got.Code != 0 || got.Stderr != "" {
				t.Errorf("got %d, %s", got.Code, got.Stderr)
			}
			golden.Check(t, filepath.Join("testdata", name+".txt"), got.Stdout)
		})
	}
}

func TestPreview_Golden(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New(`User "alice" cannot update resource "deployments"`))
	denied := apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", nil)
	denied.ErrStatus.Message = `deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'replicas' with binding 'replicas' denied request: at least two`
	closed := func(p *v1alpha1.RemediationPolicy) {
		p.Spec.Schedule = v1alpha1.RemediationSchedule{MaintenanceWindow: &v1alpha1.MaintenanceWindow{Start: "22:00", End: "23:00", TimeZone: "UTC"}}
	}
	cases := map[string]struct {
		policy []func(*v1alpha1.RemediationPolicy)
		put    func([]byte) ([]byte, error)
		args   []string
	}{
		"converges": {},
		"wide":      {args: []string{"-o", "wide"}},
		"json":      {args: []string{"-o", "json"}},
		"diverges": {put: func(body []byte) ([]byte, error) {
			return []byte(strings.Replace(string(body), `"replicas":1`, `"replicas":3`, 1)), nil
		}},
		"forbidden": {put: func([]byte) ([]byte, error) { return nil, forbidden }},
		"denied":    {put: func([]byte) ([]byte, error) { return nil, denied }},
		"conflict": {put: func([]byte) ([]byte, error) {
			return nil, apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "web", errors.New("changed"))
		}},
		"unknown":    {put: func([]byte) ([]byte, error) { return nil, apierrors.NewInternalError(errors.New("etcd is\nill")) }},
		"closed":     {policy: []func(*v1alpha1.RemediationPolicy){closed}},
		"left-out":   {policy: []func(*v1alpha1.RemediationPolicy){func(p *v1alpha1.RemediationPolicy) { p.Spec.MinimumSeverity = v1alpha1.SeverityCritical }}},
		"notify":     {policy: []func(*v1alpha1.RemediationPolicy){func(p *v1alpha1.RemediationPolicy) { p.Spec.Action = v1alpha1.ActionNotifyOnly }}},
		"wrong-zone": {policy: []func(*v1alpha1.RemediationPolicy){closed, func(p *v1alpha1.RemediationPolicy) { p.Spec.Schedule.MaintenanceWindow.TimeZone = "Mars/Base" }}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := shop(t, tc.policy...)
			f.targets.put = tc.put
			got := f.run(t, "", append([]string{"plan", "preview", "production"}, tc.args...)...)
			if got.Code != 0 || got.Stderr != "" {
				t.Errorf("got %d, %s", got.Code, got.Stderr)
			}
			if strings.Contains(got.Stdout, "-secret") {
				t.Errorf("a secret is shown:\n%s", got.Stdout)
			}
			golden.Check(t, filepath.Join("testdata", "preview/"+name+".txt"), got.Stdout)
		})
	}
}

func TestExplain_Golden(t *testing.T) {
	acts := activeBy("alice")
	young := func(p *v1alpha1.RemediationPolicy) {
		p.Spec.MinimumDriftAge = &metav1.Duration{Duration: 2 * time.Hour}
	}
	halted := ledgerFor("production", actions.ScopeEnvironment, func(l *v1alpha1.RemediationLedger) {
		l.Spec.Halt = &v1alpha1.LedgerHalt{RequestedBy: "bob", Reason: "INC-9"}
		l.Status.Sequence = 4
	})
	cases := map[string]struct {
		policy  []func(*v1alpha1.RemediationPolicy)
		objects []client.Object
		args    []string
	}{
		"now":       {policy: []func(*v1alpha1.RemediationPolicy){acts}, args: []string{"production"}},
		"observes":  {args: []string{"deployment/web"}},
		"later":     {policy: []func(*v1alpha1.RemediationPolicy){acts, young}, args: []string{"production", "deployment/web", "deployment/calm"}},
		"halted":    {policy: []func(*v1alpha1.RemediationPolicy){acts}, objects: []client.Object{halted}, args: []string{"production", "-A"}},
		"under-way": {policy: []func(*v1alpha1.RemediationPolicy){acts}, objects: []client.Object{planOf("busy", inPhase(v1alpha1.PlanRunning))}, args: []string{"deployment/web"}},
		"not-selected": {policy: []func(*v1alpha1.RemediationPolicy){func(p *v1alpha1.RemediationPolicy) {
			p.Spec.Resources = []v1alpha1.GuardedResource{{APIVersion: "v1", Kind: "ConfigMap"}}
		}}, args: []string{"production", "deployment/web"}},
		"json": {policy: []func(*v1alpha1.RemediationPolicy){acts}, args: []string{"production", "-o", "json"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := shop(t, tc.policy...)
			f.objects = append(f.objects, tc.objects...)
			got := f.run(t, "", append([]string{"policy", "explain"}, tc.args...)...)
			if got.Code != 0 || got.Stderr != "" {
				t.Errorf("got %d, %s", got.Code, got.Stderr)
			}
			golden.Check(t, filepath.Join("testdata", "explain/"+name+".txt"), got.Stdout)
		})
	}
}

// The clock of whoever asks may be wrong; what is explained is what the assessor
// and the executor do, which go by the API server's time.
func TestExplain_ByTheTimeOfTheAPIServer(t *testing.T) {
	f := shop(t, activeBy("alice"))
	f.time = func() time.Time { return before(0).Add(30 * time.Minute) }
	for _, command := range [][]string{{"policy", "explain", "production"}, {"policy", "explain", "deployment/web"}} {
		got := f.run(t, "", command...)
		if got.Code != 0 || !strings.Contains(got.Stdout, "Age             1h30m0s") {
			t.Errorf("%v: got %d %s, want an age of half an hour more", command, got.Code, got.Stdout+got.Stderr)
		}
	}
}

func TestExplain_Failures(t *testing.T) {
	zone := func(p *v1alpha1.RemediationPolicy) {
		p.Spec.Schedule = v1alpha1.RemediationSchedule{MaintenanceWindow: &v1alpha1.MaintenanceWindow{Start: "22:00", End: "23:00", TimeZone: "Mars/Base"}}
	}
	cases := map[string]struct {
		policy []func(*v1alpha1.RemediationPolicy)
		args   []string
		code   int
		want   string
	}{
		"nothing named":                       {code: 1, want: "error: name a policy, or an object as TYPE/NAME\n"},
		"a policy that is not there":          {args: []string{"nope"}, code: 1, want: `remediationpolicies.plumbline.dev "nope" not found`},
		"an object that has no Baseline":      {args: []string{"deployment/nope"}, code: 1, want: "deployment.apps/nope in namespace shop has no Baseline"},
		"two policies":                        {args: []string{"production", "staging"}, code: 1, want: `name objects as TYPE/NAME: "staging"`},
		"a namespace without drift":           {args: []string{"production", "-n", "other"}, want: ""},
		"a policy that has to be put right":   {policy: []func(*v1alpha1.RemediationPolicy){zone}, args: []string{"production"}, want: "Warning: policy production makes no plans before this is put right: spec.schedule.maintenanceWindow.timeZone"},
		"an object by name in all namespaces": {args: []string{"deployment/web", "-A"}, code: 1, want: "a resource cannot be retrieved by name across all namespaces"},
		"an output format that is none":       {args: []string{"production", "-o", "csv"}, code: 1, want: `output format "csv"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := shop(t, tc.policy...).run(t, "", append([]string{"policy", "explain"}, tc.args...)...)
			if got.Code != tc.code || !strings.Contains(got.Stderr, tc.want) {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}

func TestExplain_CompletesPoliciesThenObjects(t *testing.T) {
	f := shop(t)
	if got := f.run(t, "", "__complete", "policy", "explain", "pro"); !strings.HasPrefix(got.Stdout, "production\tObserveOnly\n") {
		t.Errorf("got %q", got.Stdout)
	}
	for _, args := range [][]string{{"production", "deployment/w"}, {"deployment/w"}} {
		if got := f.run(t, "", append([]string{"__complete", "policy", "explain"}, args...)...); !strings.HasPrefix(got.Stdout, "deployment/web\t") {
			t.Errorf("%q gave %q", args, got.Stdout)
		}
	}
}
