// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/gitops"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

var testNow = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

const own = "plumbline-system"

// authority signs leaves for a test; each call of newAuthority makes another.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tests"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: testNow.Add(-time.Hour), NotAfter: testNow.Add(90 * 24 * time.Hour),
	}
	return authority{signed(t, template, template, key, key), key}
}

func signed(t *testing.T, template, parent *x509.Certificate, key, by *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (a authority) leaf(t *testing.T, from, to time.Time) *x509.Certificate {
	t.Helper()
	return a.leafOf(t, from, to, "plumbline-webhook.plumbline-system.svc")
}

func (a authority) leafOf(t *testing.T, from, to time.Time, names ...string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signed(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: from, NotAfter: to, DNSNames: names,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.certificate, key, a.key)
}

func (a authority) bundle() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

var (
	anyWrite = []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete}
	storing  = anyWrite[:2]
	updates  = anyWrite[1:2]
	lives    = []admissionv1.OperationType{admissionv1.Create, admissionv1.Delete}
)

func rule(operations []admissionv1.OperationType, group, resource string) admissionv1.RuleWithOperations {
	scope := admissionv1.NamespacedScope
	return admissionv1.RuleWithOperations{Operations: operations, Rule: admissionv1.Rule{
		APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource}, Scope: &scope,
	}}
}

func objectRules(operations []admissionv1.OperationType, suffix string) []admissionv1.RuleWithOperations {
	return []admissionv1.RuleWithOperations{rule(operations, "apps", "deployments"+suffix), rule(operations, "apps", "statefulsets"+suffix), rule(operations, "batch", "cronjobs"+suffix)}
}

func bypassRules() []admissionv1.RuleWithOperations {
	return []admissionv1.RuleWithOperations{
		rule(updates, "apps", "deployments/scale"), rule(updates, "apps", "statefulsets/scale"),
		rule(updates, "", "pods/ephemeralcontainers"), rule(updates, "", "pods/resize"),
	}
}

func excludedSelector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"kube-system", "kube-node-lease", "kube-public", own},
	}}}
}

func ourWebhook(mutating bool, bundle []byte) Webhook {
	w := Webhook{
		Mutating: mutating, Configuration: "plumbline", Labels: map[string]string{versionLabel: "0.1.0"}, Name: verdictWebhook,
		Client: admissionv1.WebhookClientConfig{
			Service:  &admissionv1.ServiceReference{Namespace: own, Name: "plumbline-webhook"},
			CABundle: bundle,
		},
		Rules:         append(objectRules(lives, ""), bypassRules()...),
		FailurePolicy: admissionv1.Ignore, MatchPolicy: admissionv1.Equivalent, SideEffects: admissionv1.SideEffectClassNoneOnDryRun,
		NamespaceSelector: excludedSelector(), TimeoutSeconds: 2,
		Conditions: []admissionv1.MatchCondition{{Name: conditionName, Expression: "true"}},
	}
	if mutating {
		w.Name, w.Reinvoked, w.Rules = hashWebhook, true, objectRules(storing, "")
	}
	return w
}

// foreign is somebody else's webhook on pods that fails closed and keeps out of
// the cluster's way.
func foreign(name string, change func(*Webhook)) Webhook {
	w := Webhook{
		Configuration: name, Name: name + ".example.com", FailurePolicy: admissionv1.Fail, MatchPolicy: admissionv1.Equivalent, TimeoutSeconds: 5,
		Client:            admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "others", Name: name}},
		Rules:             []admissionv1.RuleWithOperations{rule(storing, "", "pods")},
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"kube-system", "kube-node-lease", "others"}}}},
	}
	if change != nil {
		change(&w)
	}
	return w
}

func namedRules(rules []admissionv1.RuleWithOperations) []admissionv1.NamedRuleWithOperations {
	var out []admissionv1.NamedRuleWithOperations
	for _, r := range rules {
		out = append(out, admissionv1.NamedRuleWithOperations{RuleWithOperations: r})
	}
	return out
}

// onCluster is a rule for what has no namespace.
func onCluster(r admissionv1.RuleWithOperations) admissionv1.RuleWithOperations {
	scope := admissionv1.ClusterScope
	r.Scope = &scope
	return r
}

func validating(name string, selector *metav1.LabelSelector, rules ...admissionv1.RuleWithOperations) Policy {
	return Policy{Kind: validatingPolicy, Name: name, Labels: map[string]string{versionLabel: "0.1.0"}, FailurePolicy: admissionv1.Fail, NamespaceSelector: selector, Rules: namedRules(rules), Effects: 1}
}

func bound(kind, name string) Binding {
	b := Binding{Kind: kind + "Binding", Name: name, Policy: name}
	if kind == validatingPolicy {
		b.Actions = []admissionv1.ValidationAction{admissionv1.Deny}
	}
	return b
}

func healthyPolicies() Policies {
	group := v1alpha1.GroupVersion.Group
	writer := validating(writerPolicy, excludedSelector(), objectRules(storing, "")...)
	writer.Kind = mutatingPolicy
	deny := validating(denyPolicy, excludedSelector(), append(objectRules(anyWrite, ""), bypassRules()...)...)
	deny.ParamKind, deny.FailurePolicy = "ClusterSpecGuard", admissionv1.Ignore
	supersede := validating(releaseSupersedePolicy, excludedSelector(), rule(updates, "apps", "deployments"), rule(updates, "apps", "statefulsets"), rule(updates, "apps", "daemonsets"))
	supersede.ParamKind, supersede.FailurePolicy, supersede.Conditions = "ABRelease", admissionv1.Ignore, []string{"run-under-way"}
	supersedeBinding := bound(validatingPolicy, releaseSupersedePolicy)
	supersedeBinding.Param = &admissionv1.ParamRef{Selector: &metav1.LabelSelector{}}
	denyBinding := bound(validatingPolicy, denyPolicy)
	denyBinding.Param = &admissionv1.ParamRef{Selector: &metav1.LabelSelector{}}
	return Policies{
		Policies: []Policy{
			writer, deny, supersede,
			validating(releaseWritersPolicy, nil, rule(storing, group, "abreleases"), rule(updates, group, "abreleases/status")),
			validating(releaseWorkWritersPolicy, nil, rule(storing, group, "releaseworks"), rule(updates, group, "releaseworks/status")),
			validating(stampStatusPolicy, excludedSelector(), objectRules(updates, "/status")...),
			validating(requestedByPolicy, nil, rule(storing, group, "baselines")),
			validating(baselineWritersPolicy, nil, rule(anyWrite, group, "baselines"), rule(anyWrite, group, "baselinerevisions"), rule(updates, group, "baselines/status")),
			validating(policyWritersPolicy, nil, onCluster(rule(storing, group, "remediationpolicies")), onCluster(rule(updates, group, "remediationpolicies/status"))),
			validating(planWritersPolicy, nil, rule(anyWrite, group, "remediationplans"), rule(updates, group, "remediationplans/status")),
			validating(requestWritersPolicy, nil, rule(storing, group, "remediationrequests"), rule(updates, group, "remediationrequests/status")),
			validating(assessmentWritersPolicy, nil, rule(anyWrite, group, "effectivenessassessments"), rule(updates, group, "effectivenessassessments/status")),
			validating(ledgerWritersPolicy, nil, rule(storing, group, "remediationledgers"), rule(updates, group, "remediationledgers/status")),
			validating(executorMarksPolicy, nil, rule(updates, group, "baselines/status"), onCluster(rule(updates, group, "environments/status"))),
			validating(executorStandbysPolicy, nil, rule(anyWrite, group, "abreleases")),
			validating(executorCreationsPolicy, excludedSelector(), objectRules([]admissionv1.OperationType{admissionv1.Create}, "")...),
		},
		Bindings: []Binding{
			bound(mutatingPolicy, writerPolicy), denyBinding, bound(validatingPolicy, stampStatusPolicy),
			bound(validatingPolicy, requestedByPolicy), bound(validatingPolicy, baselineWritersPolicy),
			bound(validatingPolicy, policyWritersPolicy), bound(validatingPolicy, planWritersPolicy),
			bound(validatingPolicy, requestWritersPolicy), bound(validatingPolicy, assessmentWritersPolicy), bound(validatingPolicy, ledgerWritersPolicy), bound(validatingPolicy, executorMarksPolicy),
			bound(validatingPolicy, executorCreationsPolicy), bound(validatingPolicy, executorStandbysPolicy), supersedeBinding,
			bound(validatingPolicy, releaseWritersPolicy), bound(validatingPolicy, releaseWorkWritersPolicy),
		},
	}
}

func discovered() []Resource {
	resources := []Resource{
		{"apps", "v1", "deployments", "Deployment", true}, {"apps", "v1", "deployments/scale", "Scale", true},
		{"apps", "v1", "statefulsets", "StatefulSet", true}, {"apps", "v1", "statefulsets/scale", "Scale", true},
		{"batch", "v1", "cronjobs", "CronJob", true}, {"batch", "v1", "jobs", "Job", true},
		{"", "v1", "pods/ephemeralcontainers", "Pod", true}, {"", "v1", "pods/resize", "Pod", true},
		{"admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy", false},
	}
	for _, name := range ownKinds {
		resources = append(resources, Resource{v1alpha1.GroupVersion.Group, "v1alpha1", name, "", true})
	}
	return resources
}

func specGuard(namespace, name string, mode v1alpha1.GuardMode, kinds ...string) Guard {
	g := Guard{Namespace: namespace, Name: name, Generation: 1, Spec: v1alpha1.GuardSpec{
		Mode:           mode,
		TrustedWriters: v1alpha1.Writers{ServiceAccounts: []v1alpha1.ServiceAccountReference{{Namespace: "ci", Name: "deployer"}}},
	}}
	for _, kind := range kinds {
		version := "apps/v1"
		if kind == "CronJob" || kind == "Job" {
			version = "batch/v1"
		}
		g.Spec.Resources = append(g.Spec.Resources, v1alpha1.GuardedResource{APIVersion: version, Kind: kind})
	}
	g.Status.ObservedGeneration = 1
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Active"}}
	return g
}

func webhookPod(name string, expiry time.Time) Pod {
	return Pod{Name: name, Component: "webhook", Version: "0.1.0", Build: "v0.1.0", Ready: true, Metrics: Got(Metrics{
		metricExpiry: float64(expiry.Unix()), metricRedisUp: 1, metricWritten: 7, metricReviews: 12,
	})}
}

// Keys are slow to make, and nothing changes these.
var (
	issued           sync.Once
	healthyAuthority authority
	healthyLeaf      *x509.Certificate
)

// healthy is an installation with nothing wrong.
func healthy(t *testing.T) *Snapshot {
	t.Helper()
	issued.Do(func() {
		healthyAuthority = newAuthority(t)
		healthyLeaf = healthyAuthority.leaf(t, testNow.Add(-24*time.Hour), testNow.Add(6*24*time.Hour))
	})
	ca, leaf := healthyAuthority, healthyLeaf
	s := &Snapshot{
		Now: testNow, Skew: Got(time.Second), ClientVersion: "v0.1.0", Namespace: own,
		User:       Got(User{Name: "admin"}),
		Server:     Got(ServerVersion{GitVersion: "v1.36.3", Major: 1, Minor: 36}),
		APIServers: Got([]string{"one"}),
		Resources:  Got(discovered()),
		Namespaces: Got(map[string]map[string]string{}),
		Mesh:       Mesh{Injected: Got([]string{})},
		Delivery:   Delivery{Held: Got([]Held{})},
		Routers:    Routers{All: Got([]Router{}), Releases: Got([]RoutedRelease{}), Owned: Got([]gitops.Ownership{})},
		Webhooks:   Got([]Webhook{ourWebhook(true, ca.bundle()), ourWebhook(false, ca.bundle())}),
		Policies:   Got(healthyPolicies()),
		Guards:     Got([]Guard{specGuard("shop", "shop", v1alpha1.GuardModeWarn, "Deployment")}),
		Baselines:  Got(Baselines{Total: 2, OldestCheck: testNow.Add(-time.Minute)}),
		Workloads: Got([]Workload{
			{Name: WebhookName, Component: "webhook", Version: "0.1.0", Desired: 2, Ready: 2, Args: []string{"--redis-address=plumbline-redis:6379", "--stamp-writer=false"}},
			{Name: AssessorName, Component: "assessor", Version: "0.1.0", Desired: 2, Ready: 2, Args: []string{"--role=assess", executorUserFlag + executorUser}},
			{Name: RedisName, Component: "redis", Version: "0.1.0", Desired: 1, Ready: 1},
			{Name: ExecutorName, Component: "executor", Version: "0.1.0", Desired: 1, Ready: 1, Args: []string{"--role=execute", "--evidence=file:///evidence", serveEvidenceFlag}},
		}),
		Pods: Got([]Pod{webhookPod("webhook-a", leaf.NotAfter), webhookPod("webhook-b", leaf.NotAfter),
			{Name: "executor-a", Component: "executor", Version: "0.1.0", Ready: true, Records: Got(struct{}{})}}),
		Service:       Got(ServiceStatus{Addresses: Got(2)}),
		Certificate:   Got(Certificate{Leaf: leaf}),
		AssessorLease: Got(Lease{Holder: "assessor-a", Renewed: testNow.Add(-2 * time.Second), Duration: 15 * time.Second}),
		Roles: Got(Roles{
			ClusterRoles: map[string][]rbacv1.PolicyRule{"cluster-admin": {{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}},
			ClusterBindings: []RoleBinding{{Role: rbacv1.RoleRef{Kind: "ClusterRole", Name: "cluster-admin"},
				Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:masters"}}}},
		}),
		Remediation: healthyRemediation(),
	}
	giveExecutor(s)
	s.GitOps.Metadata = map[string]Read[gitops.Metadata]{}
	for _, o := range s.FilledObjects() {
		s.GitOps.Metadata[o.ID()] = Got(gitops.Metadata{})
	}
	for _, name := range []string{"default", "kube-system", "kube-node-lease", "kube-public", own, "shop", "others"} {
		s.Namespaces.Value[name] = map[string]string{corev1.LabelMetadataName: name}
	}
	plan, ok := PlanWrite(s, "")
	if !ok {
		t.Fatal("no write can be planned")
	}
	s.Probes = Probes{
		Plan: plan,
		Write: Got(Written{Writer: "admin", Hash: "pl1:sha256:aa", WantHash: "pl1:sha256:aa", Took: 12 * time.Millisecond,
			ReviewsBefore: Got(24.0), ReviewsAfter: Got(26.0)}),
		Baseline: Got(Outcome{Refused: true, By: baselineWritersPolicy}),
	}
	for _, name := range []string{policyWritersPolicy, planWritersPolicy, requestWritersPolicy, assessmentWritersPolicy, ledgerWritersPolicy, executorMarksPolicy} {
		s.Probes.Forgeries = append(s.Probes.Forgeries, Forgery{Policy: name, What: "a forged write", Read: Got(Outcome{Refused: true, By: name})})
	}
	return s
}
