// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cli

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/doctor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// patience bounds every wait: a deleted kind takes its time to come back.
const patience = time.Minute

// examine runs the command and decodes what it prints.
func (c *clinic) examine(ctx context.Context, t *testing.T, config string, args ...string) (doctor.Report, answer) {
	t.Helper()
	got := plumbline(ctx, config, "", "", append([]string{"doctor", "-o", "json"}, args...)...)
	var report doctor.Report
	if got.Stdout != "" {
		if err := json.Unmarshal([]byte(got.Stdout), &report); err != nil {
			t.Fatalf("decoding the report: %v\n%s", err, got.Stdout)
		}
	}
	return report, got
}

// bad are the findings of severity Warning and worse.
func bad(report doctor.Report) []string {
	var out []string
	for _, f := range report.Findings {
		if f.Severity == doctor.Critical || f.Severity == doctor.Warning || f.Severity == doctor.Unknown {
			out = append(out, fmt.Sprintf("%s %s %s: %s", f.ID, f.Severity, f.Object, f.Message))
		}
	}
	return out
}

// awaitHealthy waits until nothing is wrong, and asks for exit code 0 then.
func (c *clinic) awaitHealthy(t *testing.T) {
	t.Helper()
	must(t, harness.Eventually(t.Context(), "a healthy installation", patience, func(ctx context.Context) (bool, string) {
		report, got := c.examine(ctx, t, c.config, "--fail-on=warning")
		return len(bad(report)) == 0 && got.Code == 0, fmt.Sprintf("exit code %d, %s\n%s", got.Code, describe(bad(report)), got.Stderr)
	}))
}

// ailment is one way to break a healthy installation.
type ailment struct {
	name string
	// breaks returns the way back.
	breaks func(t *testing.T, c *clinic) (restore func())
	// id and severity of a finding, and a part of what it says.
	id       string
	severity doctor.Severity
	says     string
}

// TestDoctor_FindsWhatIsBroken installs the chart, sees nothing wrong, and then
// breaks the installation in one way after another. Each must be found, by its
// name, and be gone when it is put right.
func TestDoctor_FindsWhatIsBroken(t *testing.T) {
	c := newClinic(t)
	c.shop(t)
	c.awaitHealthy(t)
	for _, a := range ailments() {
		t.Run(a.name, func(t *testing.T) {
			rotation.Share(t, 3)
			c.suffers(t, a)
		})
	}
	t.Run("what only some may read", func(t *testing.T) { restrictedUsers(t, c) })
	t.Run("as a person reads it", func(t *testing.T) { drawn(t, c) })
	t.Run("what helm puts right", func(t *testing.T) { upgraded(t, c) })
}

// TestDoctor_GuardsThatDeny: a guard in mode Deny is proved by a write that it
// refuses, and found when it refuses nothing.
func TestDoctor_GuardsThatDeny(t *testing.T) {
	c := newClinic(t)
	c.shop(t)
	must(t, c.kube.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "vault"}}))
	must(t, c.kube.Create(t.Context(), vaultGuard()))
	c.awaitHealthy(t)
	for _, a := range []ailment{
		{"its policy is not bound", func(t *testing.T, c *clinic) func() {
			return c.remove(t, &admissionv1.ValidatingAdmissionPolicyBinding{}, "", "plumbline-deny")
		}, "policy.deny", doctor.Critical, "was not rejected"},
		{"its policy only audits", func(t *testing.T, c *clinic) func() {
			binding := &admissionv1.ValidatingAdmissionPolicyBinding{}
			return c.edit(t, binding, "", "plumbline-deny", func() { binding.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Audit} })
		}, "policy.deny", doctor.Critical, "not Deny"},
	} {
		t.Run(a.name, func(t *testing.T) { c.suffers(t, a) })
	}
}

// suffers breaks an installation, waits until that is found, and puts it right.
func (c *clinic) suffers(t *testing.T, a ailment) {
	restore := a.breaks(t, c)
	err := harness.Eventually(t.Context(), a.id+" to find it", patience, func(ctx context.Context) (bool, string) {
		report, got := c.examine(ctx, t, c.config, "--fail-on=warning")
		found := slices.ContainsFunc(report.Findings, func(f doctor.Finding) bool {
			return f.ID == a.id && f.Severity == a.severity && strings.Contains(f.Object+" "+f.Message, a.says) && f.Fix != "" && f.Docs != ""
		})
		return found && got.Code == 1, fmt.Sprintf("exit code %d, %s\n%s", got.Code, describe(bad(report)), got.Stderr)
	})
	restore()
	must(t, err)
	c.awaitHealthy(t)
}

func ailments() []ailment {
	return slices.Concat(admissionAilments(), policyAilments(), clusterAilments(), withoutExecutorAilments())
}

func admissionAilments() []ailment {
	mutating, validating := &admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}
	change := func(change func(w *admissionv1.ValidatingWebhook)) func(*testing.T, *clinic) func() {
		return func(t *testing.T, c *clinic) func() {
			return c.edit(t, validating, "", "plumbline", func() { change(&validating.Webhooks[0]) })
		}
	}
	return []ailment{
		{"kube-system is no longer excluded", change(func(w *admissionv1.ValidatingWebhook) {
			w.NamespaceSelector.MatchExpressions[0].Values = []string{"kube-public", "kube-node-lease", rendered.Namespace}
		}), "webhook.registration", doctor.Critical, "does not exclude kube-system"},
		{"failurePolicy is Fail", change(func(w *admissionv1.ValidatingWebhook) { w.FailurePolicy = new(admissionv1.Fail) }),
			"webhook.registration", doctor.Critical, "failurePolicy is Fail"},
		{"a condition keeps every write away", change(func(w *admissionv1.ValidatingWebhook) {
			w.MatchConditions = append(w.MatchConditions, admissionv1.MatchCondition{Name: "never", Expression: "false"})
		}), "webhook.registration", doctor.Critical, "never"},
		{"a rule is gone", change(func(w *admissionv1.ValidatingWebhook) { w.Rules = w.Rules[1:] }),
			"webhook.rules", doctor.Critical, "deployments.apps (CREATE, DELETE)"},
		{"scale is not seen", change(func(w *admissionv1.ValidatingWebhook) {
			w.Rules = slices.DeleteFunc(w.Rules, func(r admissionv1.RuleWithOperations) bool { return slices.Contains(r.Resources, "deployments/scale") })
		}), "webhook.rules", doctor.Warning, "deployments.apps/scale"},
		{"the mutating configuration is deleted", func(t *testing.T, c *clinic) func() { return c.remove(t, mutating, "", "plumbline") },
			"webhook.registration", doctor.Critical, "not registered"},
		{"the caBundle is another's and the webhook cannot mend it", func(t *testing.T, c *clinic) func() {
			kill(t, c.webhook)
			restore := c.edit(t, mutating, "", "plumbline", func() { mutating.Webhooks[0].ClientConfig.CABundle = certificatePEM(t, time.Hour) })
			return func() { restore(); c.startWebhook() }
		}, "webhook.bundle", doctor.Critical, "does not vouch"},
		{"the webhook does not run", func(t *testing.T, c *clinic) func() {
			kill(t, c.webhook)
			return func() { c.startWebhook() }
		}, "webhook.reachable", doctor.Critical, "plumbline.dev/spec-hash"},
		{"the certificate that is stored is old", func(t *testing.T, c *clinic) func() {
			kill(t, c.webhook) // it would issue another at once
			secret := &corev1.Secret{}
			c.edit(t, secret, rendered.Namespace, "plumbline-webhook-tls", func() { secret.Data["tls.crt"] = certificatePEM(t, time.Hour) })
			return func() { c.startWebhook() } // certificate and key do not fit: it makes new ones
		}, "webhook.certificate", doctor.Warning, "its certificate expires in"},
	}
}

func policyAilments() []ailment {
	warnOnly := func(name string) func(*testing.T, *clinic) func() {
		return func(t *testing.T, c *clinic) func() {
			binding := &admissionv1.ValidatingAdmissionPolicyBinding{}
			return c.edit(t, binding, "", name, func() { binding.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Warn} })
		}
	}
	return []ailment{
		{"the writer policy is not bound", func(t *testing.T, c *clinic) func() {
			return c.remove(t, &admissionv1.MutatingAdmissionPolicyBinding{}, "", "plumbline-writer")
		}, "policy.writer", doctor.Critical, "came back without plumbline.dev/writer"},
		{"the writer policy lets errors pass", func(t *testing.T, c *clinic) func() {
			policy := &admissionv1.MutatingAdmissionPolicy{}
			return c.edit(t, policy, "", "plumbline-writer", func() { policy.Spec.FailurePolicy = new(admissionv1.Ignore) })
		}, "policy.writer", doctor.Warning, "failurePolicy is Ignore"},
		{"forged stamps are only warned about", warnOnly("plumbline-stamp-status"), "policy.stamp-status", doctor.Critical, "not Deny"},
		{"forged Baselines pass", warnOnly("plumbline-baseline-writers"), "policy.baseline-writers", doctor.Critical, "was not rejected"},
		{"the policy on requests is deleted", func(t *testing.T, c *clinic) func() {
			return c.remove(t, &admissionv1.ValidatingAdmissionPolicy{}, "", "plumbline-requested-by")
		}, "policy.requested-by", doctor.Critical, "does not exist"},
		{"the kind of cluster guards is deleted", func(t *testing.T, c *clinic) func() {
			return c.remove(t, &apiextensionsv1.CustomResourceDefinition{}, "", "clusterspecguards.plumbline.dev")
		}, "policy.deny", doctor.Critical, "silently off"},
	}
}

func clusterAilments() []ailment {
	return []ailment{
		{"somebody's webhook blocks leases", func(t *testing.T, c *clinic) func() {
			return c.add(t, theirs("strict", admissionv1.Fail, 1, ruleOn("coordination.k8s.io", "leases")))
		}, "cluster.scopes", doctor.Critical, "leases of nodes"},
		{"slow webhooks add up", func(t *testing.T, c *clinic) func() {
			return c.add(t, theirs("slow-a", admissionv1.Ignore, 9, ruleOn("apps", "deployments")), theirs("slow-b", admissionv1.Ignore, 9, ruleOn("apps", "deployments")))
		}, "cluster.timeouts", doctor.Warning, "up to"},
		{"everybody may change guards", func(t *testing.T, c *clinic) func() {
			return c.allow(t, "lax", rbacv1.Subject{Kind: "Group", Name: "system:authenticated"},
				rbacv1.PolicyRule{APIGroups: []string{"plumbline.dev"}, Resources: []string{"clusterspecguards"}, Verbs: []string{"*"}})
		}, "rbac.guards", doctor.Critical, "Group system:authenticated"},
		{"somebody may edit our configurations", func(t *testing.T, c *clinic) func() {
			return c.allow(t, "meddler", rbacv1.Subject{Kind: "User", Name: "mallory"},
				rbacv1.PolicyRule{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"patch"}})
		}, "rbac.admission", doctor.Warning, "User mallory"},
		{"a guard names a kind that is not registered", func(t *testing.T, c *clinic) func() {
			return c.add(t, shopGuard("jobs", "batch/v1", "Job"))
		}, "guards.coverage", doctor.Warning, "jobs.batch"},
		{"a TrafficRouter that no discovery server looks at", func(t *testing.T, c *clinic) func() {
			return c.add(t, &v1alpha1.TrafficRouter{ObjectMeta: metav1.ObjectMeta{Name: "edge"}, Spec: v1alpha1.TrafficRouterSpec{
				Type: v1alpha1.TrafficRouterWebhook, Webhook: &v1alpha1.WebhookRouter{URL: "https://edge.example.com", SecretRef: v1alpha1.RouterSecretKey{Name: "edge", Key: "key"}},
			}})
		}, "routers.enabled", doctor.Warning, "TrafficRouter/edge"},
		{"the lease of the assessor is stale", staleLease, "assessor.leader", doctor.Critical, "did not renew its lease"},
		{"the assessor has no ready replica", func(t *testing.T, c *clinic) func() {
			c.ready(t, "plumbline-assessor", 0)
			return func() { c.ready(t, "plumbline-assessor", 2) }
		}, "install.workloads", doctor.Critical, "Deployment/plumbline-system/plumbline-assessor"},
		{"the Service is gone", func(t *testing.T, c *clinic) func() {
			return c.remove(t, &corev1.Service{}, rendered.Namespace, "plumbline-webhook")
		}, "install.workloads", doctor.Critical, "Service/plumbline-system/plumbline-webhook"},
		{"the webhook is of another version", func(t *testing.T, c *clinic) func() {
			d := &appsv1.Deployment{}
			return c.edit(t, d, rendered.Namespace, "plumbline-webhook", func() { d.Labels["app.kubernetes.io/version"] = "0.0.1" })
		}, "install.versions", doctor.Warning, "0.0.1"},
		{"details are dropped", func(t *testing.T, c *clinic) func() {
			d := shopDeployment("dropped")
			remove := c.add(t, d) // a real write: its record has nowhere to go
			return func() {
				remove()
				kill(t, c.webhook) // counts begin anew
				c.startWebhook()
			}
		}, "details.redis", doctor.Warning, "cannot write to Redis"},
	}
}

// staleLease ends the leader without goodbye and lets its lease grow old. The
// way back frees the lease, so that the next leader need not wait for it.
func staleLease(t *testing.T, c *clinic) func() {
	kill(t, c.assessor)
	lease := &coordinationv1.Lease{}
	c.edit(t, lease, rendered.Namespace, "plumbline-assessor", func() {
		lease.Spec.RenewTime = new(metav1.NewMicroTime(time.Now().Add(-time.Hour)))
	})
	return func() {
		c.edit(t, lease, rendered.Namespace, "plumbline-assessor", func() { lease.Spec.HolderIdentity = nil })
		c.startAssessor()
	}
}

func ruleOn(group, resource string) admissionv1.RuleWithOperations {
	return admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource}},
	}
}

// theirs is somebody else's mutating webhook; nobody listens there.
func theirs(name string, policy admissionv1.FailurePolicyType, seconds int32, r admissionv1.RuleWithOperations) *admissionv1.MutatingWebhookConfiguration {
	url := "https://127.0.0.1:1/"
	return &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionv1.MutatingWebhook{{
		Name: name + ".example.com", ClientConfig: admissionv1.WebhookClientConfig{URL: &url}, AdmissionReviewVersions: []string{"v1"},
		SideEffects: new(admissionv1.SideEffectClassNone), FailurePolicy: &policy, TimeoutSeconds: &seconds, Rules: []admissionv1.RuleWithOperations{r},
	}}}
}

func shopDeployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "shop:1"}}},
			},
		},
	}
}

// certificatePEM is a certificate for the webhook's name, by an authority that
// nobody knows, that has an hour of a week left.
func certificatePEM(t *testing.T, left time.Duration) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "somebody"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-7 * 24 * time.Hour), NotAfter: time.Now().Add(left), DNSNames: []string{"plumbline-webhook." + rendered.Namespace + ".svc"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// restrictedUsers: what a user may not read is Unknown, with the right named,
// and never good.
func restrictedUsers(t *testing.T, c *clinic) {
	nobody := c.user(t, "nobody")
	report, got := c.examine(t.Context(), t, nobody)
	if got.Code != 2 || !strings.Contains(got.Stderr, "these checks had no answer") {
		t.Errorf("a user without rights gets exit code %d and %q, want 2", got.Code, got.Stderr)
	}
	for _, f := range report.Findings {
		discovered := []string{"install.kinds", "install.apiserver"} // everybody may ask for discovery
		if f.Severity == doctor.OK && !slices.Contains(discovered, f.ID) {
			t.Errorf("%s is OK for somebody who may read nothing: %s", f.ID, f.Message)
		}
	}
	restore := c.allow(t, "reader", rbacv1.Subject{Kind: "User", Name: "reader"}, rbacv1.PolicyRule{
		APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"},
	})
	defer restore()
	reader := c.user(t, "reader")
	report, got = c.examine(t.Context(), t, reader)
	var missing []string
	for _, f := range report.Findings {
		if f.Severity == doctor.Unknown {
			missing = append(missing, f.ID)
			if !strings.Contains(f.Message, "may not create") {
				t.Errorf("%s does not name the right: %s", f.ID, f.Message)
			}
		}
	}
	if want := []string{"webhook.reachable", "policy.writer"}; !slices.Equal(missing, want) || got.Code != 2 {
		t.Errorf("a reader is left without an answer by %q (exit code %d), want %q and 2", missing, got.Code, want)
	}
	if _, got := c.examine(t.Context(), t, reader, "--skip", strings.Join(missing, ",")); got.Code != 0 {
		t.Errorf("with those skipped the exit code is %d: %s", got.Code, got.Stderr)
	}
}

// drawn: the text for people holds what the JSON holds, and nothing is stored.
func drawn(t *testing.T, c *clinic) {
	got := plumbline(t.Context(), c.config, "", "", "doctor")
	for _, want := range []string{"Namespace: plumbline-system", "User: admin", "\nOK\n", "webhook.reachable", " 0 critical, 0 warning, 0 unknown"} {
		if !strings.Contains("\n "+strings.ReplaceAll(got.Stdout, "\n0 critical", "\n 0 critical"), want) {
			t.Errorf("the text lacks %q:\n%s%s", want, got.Stdout, got.Stderr)
		}
	}
	if got.Code != 0 {
		t.Errorf("exit code %d", got.Code)
	}
	stored := &appsv1.DeploymentList{}
	must(t, c.kube.List(t.Context(), stored))
	for _, d := range stored.Items {
		if d.Name == doctor.ProbeName {
			t.Errorf("the probe is stored in namespace %s", d.Namespace)
		}
	}
}

// upgraded carries out the fix that findings name. It is last: Helm also takes
// back what the stand-ins have changed.
func upgraded(t *testing.T, c *clinic) {
	webhooks := &admissionv1.ValidatingWebhookConfiguration{}
	c.edit(t, webhooks, "", "plumbline", func() { webhooks.Webhooks[0].Rules = webhooks.Webhooks[0].Rules[1:] })
	c.remove(t, &admissionv1.MutatingAdmissionPolicyBinding{}, "", "plumbline-writer")
	report, _ := c.examine(t.Context(), t, c.config)
	i := slices.IndexFunc(report.Findings, func(f doctor.Finding) bool { return f.ID == "webhook.rules" })
	if i < 0 {
		t.Fatalf("not found: %s", describe(bad(report)))
	}
	_, command, _ := strings.Cut(report.Findings[i].Fix, "\nhelm ")
	command, explained, _ := strings.Cut(command, "  # CHART is the address or directory of plumbline-")
	if explained == "" {
		t.Fatalf("the fix does not say which chart it is: %s", report.Findings[i].Fix)
	}
	args := strings.Fields(strings.ReplaceAll(command, "CHART", rendered.ChartDir()))
	if _, err := c.helm.Run(t.Context(), args...); err != nil {
		t.Fatal(err)
	}
	must(t, harness.Eventually(t.Context(), "the fix to have worked", patience, func(ctx context.Context) (bool, string) {
		report, _ := c.examine(ctx, t, c.config)
		still := slices.ContainsFunc(report.Findings, func(f doctor.Finding) bool {
			return (f.ID == "webhook.rules" || strings.HasSuffix(f.Object, "Binding/plumbline-writer")) && f.Severity != doctor.OK
		})
		return !still, describe(bad(report))
	}))
}

func TestDoctor_CannotRun(t *testing.T) {
	got := plumbline(t.Context(), kubeconfig, "default", "", "doctor", "--server", "https://127.0.0.1:1", "--insecure-skip-tls-verify")
	if want := "The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?\n"; got.Code != 2 || got.Stderr != want {
		t.Errorf("got %+v, want code 2 and %q", got, want)
	}
}

func TestDoctor_WithoutAnInstallationSaysSo(t *testing.T) {
	got := plumbline(t.Context(), kubeconfig, "", "", "doctor")
	if got.Code != 1 || !strings.Contains(got.Stdout, "no installation of Plumbline was found") {
		t.Errorf("got %+v", got)
	}
}
