// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/doctor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

const (
	executorUser  = "system:serviceaccount:" + rendered.Namespace + ":plumbline-executor"
	executorLease = "plumbline-executor"
)

// surgery is a clinic whose installation puts drift back: the executor runs as a
// process under the account that the chart gives it, and one policy is active.
type surgery struct {
	*clinic
	executor *server.Process
	health   int
	policy   *v1alpha1.RemediationPolicy
}

func newSurgery(t *testing.T) *surgery {
	t.Helper()
	c := newClinic(t, "--set", "executor.enabled=true,executor.evidence.serve=true")
	s := &surgery{clinic: c, health: freeport.For(t)}
	c.shop(t)
	must(t, c.kube.Create(t.Context(), targetsOf("shop")))
	s.policy = c.active(t)
	secret := &corev1.Secret{}
	must(t, c.kube.Get(t.Context(), client.ObjectKey{Namespace: rendered.Namespace, Name: "plumbline-evidence"}, secret))
	must(t, os.WriteFile(filepath.Join(c.dir, "key.pem"), secret.Data["key.pem"], 0o600))
	must(t, os.Mkdir(filepath.Join(c.dir, "evidence"), 0o700))
	c.pod(t, "plumbline-executor", corev1.ContainerPort{Name: "health", ContainerPort: int32(s.health)}) //nolint:gosec // a port
	s.startExecutor()
	return s
}

func (s *surgery) startExecutor() {
	s.executor = start(s.t, filepath.Join(s.dir, "assessor"), "--kubeconfig="+s.account("plumbline-executor"), "--namespace="+rendered.Namespace,
		"--role=execute", "--leader-elect=true", "--evidence=file://"+filepath.Join(s.dir, "evidence"), "--evidence-key-file="+filepath.Join(s.dir, "key.pem"),
		"--serve-evidence=true", "--metrics-address=", "--health-address=:"+strconv.Itoa(s.health), "--redis-address=")
}

// rest kills the executor; the way back frees its lease first, so that the next
// one need not wait for it.
func (s *surgery) rest(t *testing.T) (restore func()) {
	t.Helper()
	kill(t, s.executor)
	return func() {
		lease := &coordinationv1.Lease{}
		s.edit(t, lease, rendered.Namespace, executorLease, func() { lease.Spec.HolderIdentity = nil })
		s.startExecutor()
	}
}

// active is a policy of an Environment of the namespace shop that would put drift
// back.
func (c *clinic) active(t *testing.T) *v1alpha1.RemediationPolicy {
	t.Helper()
	environment := &v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "production"}, Spec: v1alpha1.EnvironmentSpec{
		Criticality: v1alpha1.CriticalityProduction, NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "shop"}},
	}}
	policy := &v1alpha1.RemediationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "images"}, Spec: v1alpha1.RemediationPolicySpec{
		EnvironmentName: "production", Mode: v1alpha1.PolicyModeActive, RequestedBy: "admin", Trigger: v1alpha1.TriggerImmediate, Action: v1alpha1.ActionReconcile,
	}}
	must(t, c.kube.Create(t.Context(), environment))
	must(t, c.kube.Create(t.Context(), policy))
	return policy
}

// inactive takes both away again.
func (c *clinic) inactive(t *testing.T) {
	t.Helper()
	must(t, c.kube.Delete(t.Context(), &v1alpha1.RemediationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "images"}}))
	must(t, c.kube.Delete(t.Context(), &v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "production"}}))
}

func targetsOf(namespace string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "plumbline-executor-targets"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "plumbline-executor-targets"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "plumbline-executor", Namespace: rendered.Namespace}},
	}
}

// as is a client with the name of one of Plumbline's own accounts: what only it may
// write can be broken by it alone.
func (c *clinic) as(t *testing.T, user string) client.Client {
	t.Helper()
	mine, err := apiserver.As(c.server.Config, user)
	must(t, err)
	return mine
}

// withoutExecutorAilments are those of an installation that puts nothing back: the
// policies on the kinds of remediation hold all the same.
func withoutExecutorAilments() []ailment {
	warnOnly := func(name string) func(*testing.T, *clinic) func() {
		return func(t *testing.T, c *clinic) func() {
			binding := &admissionv1.ValidatingAdmissionPolicyBinding{}
			return c.edit(t, binding, "", name, func() { binding.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Warn} })
		}
	}
	return []ailment{
		{"forged remediation policies pass", warnOnly("plumbline-policy-writers"), "policy.policy-writers", doctor.Critical, "was not refused"},
		{"forged plans pass", warnOnly("plumbline-plan-writers"), "policy.plan-writers", doctor.Critical, "was not refused"},
		{"forged requests pass", warnOnly("plumbline-request-writers"), "policy.request-writers", doctor.Critical, "was not refused"},
		{"forged ledgers pass", warnOnly("plumbline-ledger-writers"), "policy.ledger-writers", doctor.Critical, "was not refused"},
		{"the policy on the executor's marks is not bound", func(t *testing.T, c *clinic) func() {
			return c.remove(t, &admissionv1.ValidatingAdmissionPolicyBinding{}, "", "plumbline-executor-marks")
		}, "policy.executor-marks", doctor.Critical, "not active"},
		{"the policy on plans is deleted", func(t *testing.T, c *clinic) func() {
			return c.remove(t, &admissionv1.ValidatingAdmissionPolicy{}, "", "plumbline-plan-writers")
		}, "policy.plan-writers", doctor.Critical, "does not exist"},
		{"a condition keeps ledgers from their policy", func(t *testing.T, c *clinic) func() {
			policy := &admissionv1.ValidatingAdmissionPolicy{}
			return c.edit(t, policy, "", "plumbline-ledger-writers", func() {
				policy.Spec.MatchConditions = []admissionv1.MatchCondition{{Name: "never", Expression: "false"}}
			})
		}, "policy.ledger-writers", doctor.Critical, "matchConditions never"},
		{"a policy is active and nobody carries it out", func(t *testing.T, c *clinic) func() {
			c.active(t)
			return func() { c.inactive(t) }
		}, "executor.workload", doctor.Warning, "the executor is not enabled"},
	}
}

// TestDoctor_TheExecutor sees nothing wrong with an installation that puts drift
// back, and then breaks it in one way after another.
func TestDoctor_TheExecutor(t *testing.T) {
	s := newSurgery(t)
	s.awaitHealthy(t)
	for _, a := range slices.Concat(s.processAilments(), rightsAilments(), s.evidenceAilments(), s.ledgerAilments()) {
		t.Run(a.name, func(t *testing.T) {
			rotation.Share(t, 3)
			s.suffers(t, a)
		})
	}
}

func (s *surgery) processAilments() []ailment {
	return []ailment{
		{"the Deployment of the executor is deleted", func(t *testing.T, c *clinic) func() {
			restore := c.remove(t, &appsv1.Deployment{}, rendered.Namespace, "plumbline-executor")
			return func() { restore(); c.ready(t, "plumbline-executor", 1) }
		}, "executor.workload", doctor.Critical, "does not exist"},
		{"the executor has no ready replica", func(t *testing.T, c *clinic) func() {
			c.ready(t, "plumbline-executor", 0)
			return func() { c.ready(t, "plumbline-executor", 1) }
		}, "executor.workload", doctor.Critical, "there is no remediation"},
		{"the lease of the executor is stale", func(t *testing.T, c *clinic) func() {
			restore := s.rest(t)
			lease := &coordinationv1.Lease{}
			c.edit(t, lease, rendered.Namespace, executorLease, func() { lease.Spec.RenewTime = new(metav1.NewMicroTime(time.Now().Add(-time.Hour))) })
			return restore
		}, "executor.leader", doctor.Critical, "did not renew its lease"},
		{"a plan waits", s.waitingPlan, "remediation.plans", doctor.Warning, "Cooldown: a step has just ended"},
		{"the policy on the executor's marks only warns", func(t *testing.T, c *clinic) func() {
			binding := &admissionv1.ValidatingAdmissionPolicyBinding{}
			return c.edit(t, binding, "", "plumbline-executor-marks", func() { binding.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Warn} })
		}, "policy.executor-marks", doctor.Critical, "the ledger that Environment production remembers in a dry run was not refused"},
	}
}

// waitingPlan is one that was to begin two hours ago. The executor rests meanwhile:
// it would find out at once that nothing drifts.
func (s *surgery) waitingPlan(t *testing.T, c *clinic) func() {
	restore := s.rest(t)
	hash := "pl1:sha256:" + strings.Repeat("a", 64)
	at := metav1.NewTime(time.Now().Add(-2 * time.Hour)).Rfc3339Copy()
	plan := &v1alpha1.RemediationPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "images-1"},
		Spec: v1alpha1.RemediationPlanSpec{Plan: v1alpha1.PlannedRemediation{
			Policy:          v1alpha1.PlanPolicy{Name: s.policy.Name, UID: string(s.policy.UID), Generation: 1, Digest: "sha256:digest"},
			EnvironmentName: "production", Trigger: v1alpha1.TriggerImmediate, Strategy: v1alpha1.StrategyRolling,
			InitiatedBy: "system:auto", Requester: "admin", CorrelationID: "c-1", ScheduledTime: &at, DeadlineTime: metav1.NewTime(at.Add(24 * time.Hour)),
			Targets: []v1alpha1.PlanTarget{{
				BaselineTarget: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
				BaselineName:   "deployments.apps.web", UID: "uid-of-web", DriftedHash: hash, DesiredHash: hash,
				Revision: "deployments.apps.web-1", RevisionHash: hash, Action: v1alpha1.ActionReconcile,
				Severity: v1alpha1.Severity{Level: v1alpha1.SeverityHigh, Score: 70}, DriftType: v1alpha1.DriftScale, FirstSeenTime: at,
			}},
			Batches: []v1alpha1.PlanBatch{{Steps: []int32{0}, RequiresHealthCheck: v1alpha1.Enabled}},
		}},
	}
	must(t, c.as(t, "system:serviceaccount:"+rendered.Namespace+":plumbline-assessor").Create(t.Context(), plan))
	plan.Status = v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanDeferred, DeferralReason: "Cooldown: a step has just ended (ledger production)"}
	must(t, c.as(t, executorUser).Status().Update(t.Context(), plan))
	return func() {
		must(t, c.kube.Delete(t.Context(), plan))
		restore()
	}
}

func rightsAilments() []ailment {
	executor := rbacv1.Subject{Kind: "User", Name: executorUser}
	return []ailment{
		{"the executor may not ask who may write", func(t *testing.T, c *clinic) func() {
			role := &rbacv1.ClusterRole{}
			return c.edit(t, role, "", "plumbline-executor", func() {
				role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "subjectaccessreviews") })
			})
		}, "executor.rights", doctor.Critical, "it may not create subjectaccessreviews.authorization.k8s.io everywhere"},
		{"the executor may not write Deployments", func(t *testing.T, c *clinic) func() {
			role := &rbacv1.ClusterRole{}
			return c.edit(t, role, "", "plumbline-executor-targets", func() {
				for i := range role.Rules {
					role.Rules[i].Verbs = []string{"get"}
				}
			})
		}, "executor.rights", doctor.Critical, "does not let the executor watch,create,update,patch"},
		{"the executor may read Secrets", func(t *testing.T, c *clinic) func() {
			return c.allow(t, "curious", executor, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list"}})
		}, "executor.rights", doctor.Critical, "ClusterRole/curious by it the executor may get,list secrets everywhere"},
		{"the executor may make pods", func(t *testing.T, c *clinic) func() {
			return c.allow(t, "busy", executor, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create"}})
		}, "executor.rights", doctor.Critical, "ClusterRole/busy by it the executor may create pods everywhere"},
		{"the executor may write everywhere", func(t *testing.T, c *clinic) func() {
			binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "wide"}, RoleRef: targetsOf("").RoleRef, Subjects: targetsOf("").Subjects}
			return c.add(t, binding)
		}, "executor.rights", doctor.Critical, "deployments.apps"},
		{"the executor may write in kube-system", func(t *testing.T, c *clinic) func() {
			return c.add(t, targetsOf("kube-system"))
		}, "executor.rights", doctor.Critical, "in kube-system, which is more than it needs"},
		{"the executor may not write where a policy wants it to", func(t *testing.T, c *clinic) func() {
			return c.remove(t, &rbacv1.RoleBinding{}, "shop", "plumbline-executor-targets")
		}, "executor.namespaces", doctor.Warning, "may not write in shop of its Environment production"},
	}
}

func (s *surgery) evidenceAilments() []ailment {
	return []ailment{
		{"the public keys are gone", func(t *testing.T, c *clinic) func() {
			return c.remove(t, &corev1.ConfigMap{}, rendered.Namespace, "plumbline-evidence")
		}, "executor.evidence", doctor.Warning, "it does not exist"},
		{"the public keys are emptied", func(t *testing.T, c *clinic) func() {
			keys := &corev1.ConfigMap{}
			return c.edit(t, keys, rendered.Namespace, "plumbline-evidence", func() { keys.Data = nil })
		}, "executor.evidence", doctor.Warning, "it has no public key"},
		{"records are not served", func(t *testing.T, _ *clinic) func() { return s.rest(t) },
			"executor.evidence", doctor.Warning, "its records cannot be read through the API server"},
		{"records may be lost", func(t *testing.T, c *clinic) func() {
			d := &appsv1.Deployment{}
			return c.edit(t, d, rendered.Namespace, "plumbline-executor", func() {
				for i := range d.Spec.Template.Spec.Volumes {
					if v := &d.Spec.Template.Spec.Volumes[i]; v.Name == "evidence" {
						v.VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
					}
				}
			})
		}, "executor.evidence", doctor.Warning, "a volume that goes with its pod"},
	}
}

func (s *surgery) ledgerAilments() []ailment {
	with := func(status v1alpha1.RemediationLedgerStatus) func(*testing.T, *clinic) func() {
		return func(t *testing.T, c *clinic) func() {
			executor := c.as(t, executorUser)
			ledger := &v1alpha1.RemediationLedger{
				ObjectMeta: metav1.ObjectMeta{Namespace: rendered.Namespace, Name: "production"}, Spec: v1alpha1.RemediationLedgerSpec{Scope: "Environment"},
			}
			must(t, executor.Create(t.Context(), ledger))
			ledger.Status = status
			must(t, executor.Status().Update(t.Context(), ledger))
			return func() { must(t, c.kube.Delete(t.Context(), ledger)) }
		}
	}
	now := metav1.Now().Rfc3339Copy()
	tomorrow := metav1.NewTime(now.Add(20 * time.Hour))
	remembers := func(t *testing.T, c *clinic, ledger string) {
		environment := &v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "production"}}
		must(t, c.as(t, executorUser).Status().Patch(t.Context(), environment, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"status":{"ledgerUID":%s}}`, ledger))))
	}
	return []ailment{
		{"a ledger was made anew", with(v1alpha1.RemediationLedgerStatus{Sequence: 1, GrantStartTime: &tomorrow}), "remediation.ledgers", doctor.Warning, "it grants no steps until"},
		{"a circuit breaker is open", with(v1alpha1.RemediationLedgerStatus{Sequence: 1, Breakers: []v1alpha1.LedgerBreaker{{
			PolicyUID: string(s.policy.UID), State: v1alpha1.BreakerOpen, Generation: 1, Failures: 3, LastOpenTime: &now,
		}}}), "remediation.ledgers", doctor.Warning, "the circuit breaker of policy images is open after 3 failures"},
		{"an Environment remembers a ledger that is gone", func(t *testing.T, c *clinic) func() {
			remembers(t, c, `"uid-of-one-that-is-gone"`)
			return func() { remembers(t, c, "null") }
		}, "remediation.ledgers", doctor.Warning, "Environment production remembers it, and it is gone"},
	}
}
