// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/internal/cli"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

var errNotYet = errors.New("it is not so yet")

// The roles of who asks: to request, and to write workloads.
const (
	remediator = "plumbline-remediator"
	editor     = "system:aggregate-to-edit" // no controller aggregates here
)

// bound gives a user roles in the world's namespace.
func (w *world) bound(user string, roles ...string) {
	w.t.Helper()
	for _, role := range roles {
		b := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, GenerateName: "bound-"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		}
		w.Must(admin.Create(w.t.Context(), b))
		w.Must(apiserver.AwaitBound(w.t.Context(), admin, b.Subjects[0], b.Namespace, b.RoleRef))
	}
}

// remediates runs "remediate" as a user, and checks its exit code and its output.
func (w *world) remediates(user string, code int, args []string, want ...string) {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "kubeconfig")
	w.Must(apiserver.WriteKubeconfig(path, config, apiserver.Impersonating(config, user, "system:authenticated")))
	var out bytes.Buffer
	all := append([]string{"--kubeconfig", path, "-n", w.Name, "remediate", "--timeout", "30s"}, args...)
	if got := cli.Run(w.t.Context(), all, cli.Environment{In: &bytes.Buffer{}, Out: &out, Err: &out, Now: time.Now, Version: "test"}); got != code {
		w.t.Errorf("%s: %q gave %d, want %d: %s", user, args, got, code, out.String())
	}
	for _, text := range want {
		if !strings.Contains(out.String(), text) {
			w.t.Errorf("%s: %q gave %s, which has no %q", user, args, out.String(), text)
		}
	}
}

// untouched says that no Deployment was put back.
func (w *world) untouched(names ...string) {
	w.t.Helper()
	for _, name := range names {
		if imageOf(w.Live(name)) == guarded.Image {
			w.t.Errorf("%s was put back", name)
		}
	}
}

// laterThan starts an assessor whose clock is put forward when drift is told: what drifts
// is then too old for a policy of one minute.
func (w *world) laterThan(drift func()) {
	w.t.Helper()
	now := &inprocess.Ahead{}
	startAssessor(w.t, func(s *assessor.Setup) { s.Clock = now; now.Dates(s.Config) })
	drift()
	now.Set(time.Now().Add(5 * time.Minute))
}

func tooOld(s *v1alpha1.RemediationPolicySpec) {
	s.MaximumDriftAge = &metav1.Duration{Duration: time.Minute}
}

// What a policy leaves to people because of its age is put back for a person who asks: in
// the name of that person, with the right of that person, and within the limits.
func TestDriftThatIsTooOldForThePolicyIsPutBackForWhoAsks(t *testing.T) {
	rotation.Share(t, 3)
	w, records := newWorld(t), newEvidence(t)
	w.laterThan(func() {
		w.Rollouts()
		w.UnderGuard()
		w.crowd(6) // two of eight are no mass drift
		w.Drifted("api", "web")
	})
	startExecutor(t, records)
	policy := w.policy(tooOld, func(s *v1alpha1.RemediationPolicySpec) { s.Safety.MaxTargets, s.Safety.MaxPerHour = 1, 1 })
	w.untilWaits(policy, "2 AboveMaximumAge")
	w.bound("oscar", remediator, editor)
	w.bound("rita", remediator)
	w.bound("nora", editor, "plumbline-view")
	of := []string{"--policy", policy.Name}

	w.remediates("nora", 1, append(of, "deployment/web"), `cannot create resource "remediationrequests"`)
	w.remediates("rita", 1, append(of, "deployment/web"), "NotAllowed: rita, the user of the plan, may not update it")
	w.remediates("oscar", 1, []string{"--policy", "nowhere", "deployment/web"}, "was refused: spec.policyName: there is no RemediationPolicy \"nowhere\"")
	w.remediates("oscar", 1, append(of, "deployment/other-0"), "is in sync: there is no drift to remediate")
	w.untouched("api", "web")
	if plans := w.plans(); len(plans) != 0 {
		t.Fatalf("there are %d plans", len(plans))
	}

	w.remediates("oscar", 1, append(of, "deployment/web", "deployment/api"),
		"is not remediated: BlastRadius: one operation has at most 1 target", " begun")
	plan := w.Ended(w.onlyPlan())
	planned := &plan.Spec.Plan
	if plan.Status.Phase != v1alpha1.PlanSucceeded || planned.InitiatedBy != "oscar" || planned.Requester != "oscar" || planned.Request == nil {
		t.Errorf("the plan of %+v is %s", planned, remediation.Describe(plan))
	}
	put, left := planned.Targets[0].Name, "web"
	if put == "web" {
		left = "api"
	}
	w.UntilIs(put, "InSync")
	w.untouched(left)

	w.remediates("oscar", 0, append(of, "deployment/"+left), "begun; it waits: MaxPerHour")
	w.untouched(left)
	w.proven(records, plan)
}

// A person chooses the state that a rollback leads to.
func TestARollbackLeadsToTheRevisionThatAPersonChose(t *testing.T) {
	rotation.Share(t, 3)
	w, records := newWorld(t), newEvidence(t)
	w.laterThan(func() {
		w.Rollouts()
		w.UnderGuard()
		w.crowd(3)
		w.deployed("web")
		w.SetImage(ci, "web", "registry.example/shop:2")
		w.Until("web", "the second state was ready", func(b *v1alpha1.Baseline) error {
			if r := b.Status.LastReady; r == nil || r.Revision != b.Spec.Authorized.Revision || guarded.Authorized(b) != 2 {
				return errNotYet
			}
			return nil
		})
		w.SetEnv(mallory, "web", "MORE", "of it")
		w.Until("web", "the drift is told", drifts)
	})
	startExecutor(t, records)
	policy := w.policy(tooOld, action(v1alpha1.ActionRollback))
	w.untilWaits(policy, "1 AboveMaximumAge")
	w.bound("oscar", remediator, editor)
	w.remediates("oscar", 1, []string{"--policy", policy.Name, "deployment/web", "--to", "9"}, "NoSuchRevision: deployments.apps.web-9")
	w.remediates("oscar", 0, []string{"--policy", policy.Name, "deployment/web", "--to", "1"}, " begun")
	plan := w.succeeded()
	if live := w.Live("web"); imageOf(live) != guarded.Image {
		t.Errorf("it runs %s", imageOf(live))
	}
	w.Until("web", "what runs is the chosen state", func(b *v1alpha1.Baseline) error {
		if b.Status.Observed.Hash != plan.Spec.Plan.Targets[0].DesiredHash {
			return errNotYet
		}
		return nil
	})
	w.proven(records, plan)
}

// Neither a plan by hand nor the name of another person passes the planner.
func TestAPersonAsksInNoOthersNameAndAroundNoPlanner(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.UnderGuard()
	w.crowd(6)
	w.Drifted("web")
	policy := w.policy(selectsNothing)
	plan := w.planOf(policy, "web")
	plan.Spec.Plan.InitiatedBy, plan.Spec.Plan.Requester = platform, platform
	plan.Spec.Plan.Request = &v1alpha1.PlanRequest{Name: "ask", UID: "uid-ask"}
	request := &v1alpha1.RemediationRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: "ask"},
		Spec: v1alpha1.RemediationRequestSpec{
			PolicyName: policy.Name, RequestedBy: platform, Targets: []v1alpha1.RequestedTarget{{BaselineName: "deployments.apps.web", DriftedHash: "pl1:x"}},
		},
	}
	for what, refused := range map[string]struct {
		by     string
		object client.Object
		why    string
	}{
		"a plan by hand that claims a request": {platform, plan, "only the assessor makes plans that answer a RemediationRequest"},
		"a request in another's name":          {mallory, request.DeepCopy(), "spec.requestedBy must be the authenticated user: set it to " + mallory},
	} {
		if err := w.As(refused.by).Create(t.Context(), refused.object); err == nil || !strings.Contains(err.Error(), refused.why) {
			t.Errorf("%s gives %v, want %q", what, err, refused.why)
		}
	}
	foreign := request.DeepCopy()
	foreign.Spec.RequestedByGroups = []string{"system:masters"}
	if err := w.As(platform).Create(t.Context(), foreign); err == nil || !strings.Contains(err.Error(), "spec.requestedByGroups must be groups of the authenticated user") {
		t.Errorf("foreign groups give %v", err)
	}
	w.Must(w.As(platform).Create(t.Context(), request))
	w.Eventually("the request is answered", func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(request), request); err != nil {
			return err
		}
		if request.Status.Outcome != v1alpha1.RequestRefused || request.Status.LeftOut[0].Reason != "NotSelected" {
			return errNotYet
		}
		return nil
	})
	changed := request.DeepCopy()
	changed.Spec.Targets[0].DriftedHash = "pl1:y"
	if err := w.As(platform).Update(t.Context(), changed); err == nil || !strings.Contains(err.Error(), "immutable") {
		t.Errorf("a changed request gives %v", err)
	}
	request.Status.Outcome = v1alpha1.RequestPlanned
	if err := w.As(platform).Status().Update(t.Context(), request); err == nil || !strings.Contains(err.Error(), "only the assessor answers a RemediationRequest") {
		t.Errorf("an answer by somebody else gives %v", err)
	}
}
