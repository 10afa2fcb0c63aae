// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/test/harness/golden"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// TestWhoMayDoWhat pins every right that the chart gives, one line each. A line
// that appears in this file deserves a reviewer's question.
func TestWhoMayDoWhat(t *testing.T) {
	lines := rights(t, template(t))
	golden.Check(t, filepath.Join("testdata", "rights.txt"), strings.Join(lines, "\n")+"\n")
}

// What is added when Plumbline may write workloads.
func TestWhoMayDoWhatWhenDriftIsPutBack(t *testing.T) {
	without := rights(t, template(t))
	with := rights(t, template(t, "--set", "executor.enabled=true", "--set", "executor.namespaces={shop}", "--set", "notifications.secrets={chat}"))
	added := slices.DeleteFunc(slices.Clone(with), func(line string) bool { return slices.Contains(without, line) })
	golden.Check(t, filepath.Join("testdata", "rights-executor.txt"), strings.Join(added, "\n")+"\n")
	if removed := slices.DeleteFunc(without, func(line string) bool { return slices.Contains(with, line) }); len(removed) > 0 {
		t.Errorf("the executor takes rights from others: %q", removed)
	}
}

// What is added when the assessor assesses the effect of plans: it writes no workload, and watches no pod.
func TestWhoMayDoWhatWhenEffectsAreAssessed(t *testing.T) {
	without := rights(t, template(t))
	with := rights(t, template(t, "--set", "assessor.effectiveness.enabled=true"))
	added := slices.DeleteFunc(slices.Clone(with), func(line string) bool { return slices.Contains(without, line) })
	golden.Check(t, filepath.Join("testdata", "rights-effectiveness.txt"), strings.Join(added, "\n")+"\n")
	if removed := slices.DeleteFunc(without, func(line string) bool { return slices.Contains(with, line) }); len(removed) > 0 {
		t.Errorf("assessments take rights from others: %q", removed)
	}
}

// What is added when the assessor reports on namespaces.
func TestWhoMayDoWhatWhenTheAssessorReports(t *testing.T) {
	without := rights(t, template(t))
	with := rights(t, template(t, "--set", "assessor.reports.formats={OpenReports,PolicyReport}"))
	added := slices.DeleteFunc(slices.Clone(with), func(line string) bool { return slices.Contains(without, line) })
	golden.Check(t, filepath.Join("testdata", "rights-reports.txt"), strings.Join(added, "\n")+"\n")
}

// What is added when the assessor assesses the runs of releases beside the effect of plans.
func TestWhoMayDoWhatWhenRunsAreAssessed(t *testing.T) {
	delivery := []string{"--set", "mesh.enabled=true", "--set", "delivery.enabled=true"}
	without := append(rights(t, template(t, delivery...)), rights(t, template(t, "--set", "assessor.effectiveness.enabled=true"))...)
	with := rights(t, template(t, append(delivery, "--set", "assessor.effectiveness.enabled=true")...))
	added := slices.DeleteFunc(slices.Clone(with), func(line string) bool { return slices.Contains(without, line) })
	golden.Check(t, filepath.Join("testdata", "rights-runs.txt"), strings.Join(added, "\n")+"\n")
}

// What is added when releases are rolled out: nothing may write a workload.
func TestWhoMayDoWhatWhenReleasesAreRolledOut(t *testing.T) {
	without := rights(t, template(t, "--set", "mesh.enabled=true"))
	with := rights(t, template(t, "--set", "mesh.enabled=true", "--set", "delivery.enabled=true"))
	added := slices.DeleteFunc(slices.Clone(with), func(line string) bool { return slices.Contains(without, line) })
	golden.Check(t, filepath.Join("testdata", "rights-delivery.txt"), strings.Join(added, "\n")+"\n")
	if removed := slices.DeleteFunc(without, func(line string) bool { return slices.Contains(with, line) }); len(removed) > 0 {
		t.Errorf("rollouts take rights from others: %q", removed)
	}
}

// What is added when the executor carries out what rollouts ask of it: no right to write a workload
// that plumbline-executor-targets does not give, and none to delete anything but ReleaseWorks.
func TestWhoMayDoWhatWhenTheExecutorCarriesOutReleaseWorks(t *testing.T) {
	args := []string{"--set", "mesh.enabled=true", "--set", "executor.enabled=true"}
	without := rights(t, template(t, args...))
	rolledOut := rights(t, template(t, "--set", "mesh.enabled=true", "--set", "delivery.enabled=true"))
	with := rights(t, template(t, append(args, "--set", "delivery.enabled=true")...))
	added := slices.DeleteFunc(slices.Clone(with), func(line string) bool {
		return slices.Contains(without, line) || slices.Contains(rolledOut, line)
	})
	golden.Check(t, filepath.Join("testdata", "rights-works.txt"), strings.Join(added, "\n")+"\n")
	if removed := slices.DeleteFunc(without, func(line string) bool { return slices.Contains(with, line) }); len(removed) > 0 {
		t.Errorf("rollouts take rights from others: %q", removed)
	}
}

// What the executor adds beside a mesh: to read what proxies serve, and to move requests to a standby
// where the owner of a namespace lets it.
func TestWhoMayDoWhatWhenStandbysServe(t *testing.T) {
	mesh, executor := []string{"--set", "mesh.enabled=true"}, []string{"--set", "executor.enabled=true"}
	without := slices.Concat(rights(t, template(t, mesh...)), rights(t, template(t, executor...)))
	with := rights(t, template(t, slices.Concat(mesh, executor)...))
	added := slices.DeleteFunc(slices.Clone(with), func(line string) bool { return slices.Contains(without, line) })
	golden.Check(t, filepath.Join("testdata", "rights-standbys.txt"), strings.Join(added, "\n")+"\n")
}

// The executor finds the autoscaler whose minimum a rollout holds, and those that scale the groups of a rollout. To
// write one, autoscalers have to be among its targets.
func TestTheExecutorFindsAutoscalersOnlyWhereRolloutsNeedThem(t *testing.T) {
	const right = "role plumbline-executor-targets: list horizontalpodautoscalers.autoscaling, where bound"
	guarded := []string{"--set", "mesh.enabled=true", "--set", "executor.enabled=true", "--set-json", `guard.resources=[{"group":"apps","version":"v1","resource":"deployments"},{"group":"autoscaling","version":"v2","resource":"horizontalpodautoscalers"}]`}
	for name, tc := range map[string]struct {
		values []string
		want   bool
	}{
		"with rollouts and guarded autoscalers":    {append(slices.Clone(guarded), "--set", "delivery.enabled=true"), true},
		"without rollouts":                         {guarded, false},
		"with rollouts and no guarded autoscalers": {[]string{"--set", "mesh.enabled=true", "--set", "executor.enabled=true", "--set", "delivery.enabled=true"}, true},
		"with rollouts and no targets":             {[]string{"--set", "mesh.enabled=true", "--set", "executor.enabled=true", "--set", "delivery.enabled=true", "--set-json", `guard.resources=[{"group":"rbac.authorization.k8s.io","version":"v1","resource":"roles"}]`}, false},
	} {
		t.Run(name, func(t *testing.T) {
			lines := rights(t, template(t, tc.values...))
			if got := slices.Contains(lines, right); got != tc.want {
				t.Errorf("the right is there: %v, in\n%s", got, strings.Join(lines, "\n"))
			}
		})
	}
}

func TestRolloutsNeedTheMesh(t *testing.T) {
	if err := renderNow(t, true, "--set", "delivery.enabled=true").err; err == nil || !strings.Contains(err.Error(), "mesh.enabled") {
		t.Errorf("the error is %v", err)
	}
}

// rights lists `who: verbs resources [names] (where)` for bindings, and for
// roles that are bound by nobody here `role NAME: ...`.
func rights(t *testing.T, objects []*unstructured.Unstructured) []string {
	t.Helper()
	rules := map[string][]rbacv1.PolicyRule{}
	bound := map[string]bool{}
	var lines []string
	for _, object := range rendered.OfKind(objects, "ClusterRole") {
		rules["ClusterRole/"+object.GetName()] = convert[rbacv1.ClusterRole](t, object).Rules
	}
	for _, object := range rendered.OfKind(objects, "Role") {
		rules["Role/"+object.GetNamespace()+"/"+object.GetName()] = convert[rbacv1.Role](t, object).Rules
	}
	add := func(who, role, where string) {
		found, ok := rules[role]
		if !ok {
			t.Errorf("%s is bound to %s, which the chart does not have", who, role)
		}
		bound[role] = true
		for _, rule := range found {
			lines = append(lines, line(who, rule, where))
		}
	}
	for _, object := range rendered.OfKind(objects, "ClusterRoleBinding") {
		binding := convert[rbacv1.ClusterRoleBinding](t, object)
		for _, subject := range binding.Subjects {
			add(subject.Name, "ClusterRole/"+binding.RoleRef.Name, "everywhere")
		}
	}
	for _, object := range rendered.OfKind(objects, "RoleBinding") {
		binding := convert[rbacv1.RoleBinding](t, object)
		for _, subject := range binding.Subjects {
			role := "Role/" + binding.Namespace + "/" + binding.RoleRef.Name
			if binding.RoleRef.Kind == "ClusterRole" {
				role = "ClusterRole/" + binding.RoleRef.Name
			}
			add(subject.Name, role, "in "+binding.Namespace)
		}
	}
	for role, found := range rules {
		for _, rule := range found {
			if !bound[role] {
				lines = append(lines, line("role "+strings.TrimPrefix(role, "ClusterRole/"), rule, "where bound"))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func line(who string, rule rbacv1.PolicyRule, where string) string {
	var resources []string
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			name, subresource, _ := strings.Cut(resource, "/")
			resources = append(resources, strings.TrimRight(strings.TrimRight(name+"."+group, ".")+"/"+subresource, "/"))
		}
	}
	resources = append(resources, rule.NonResourceURLs...)
	names := ""
	if len(rule.ResourceNames) > 0 {
		names = " named " + strings.Join(rule.ResourceNames, ",")
	}
	return fmt.Sprintf("%s: %s %s%s, %s", who, strings.Join(rule.Verbs, ","), strings.Join(resources, " "), names, where)
}

// What no process of ours may ever have, whatever the values are.
func TestNoProcessMayDoThis(t *testing.T) {
	forEachValuesFile(t, func(t *testing.T, objects []*unstructured.Unstructured) {
		for _, right := range rights(t, objects) {
			who, _, _ := strings.Cut(right, ":")
			if strings.HasPrefix(right, "plumbline-selftest: get,patch deployments.apps named plumbline-selftest-object, in ") && !strings.HasSuffix(right, " "+rendered.Namespace) {
				continue // the one object that is there to be drifted
			}
			if putsBack(right) || right == "plumbline-executor: get,update,patch configmaps named plumbline-evidence, in "+rendered.Namespace {
				continue // the latter is where the public key is told
			}
			if right == "plumbline-assessor: get,update configmaps named plumbline-evidence-anchor, in "+rendered.Namespace ||
				!split(objects) && right == "plumbline-executor: get,update configmaps named plumbline-evidence-anchor, in "+rendered.Namespace {
				continue // how far the evidence goes, which an executor of its own may not write
			}
			if slices.Contains(rightsOfAuthorities, right) {
				continue
			}
			workloadWrite := strings.HasPrefix(who, "plumbline-") && who != "plumbline-install-test" &&
				containsAny(right, "create", "update", "patch", "delete") && containsAny(right, ".apps", ".batch", "configmaps", "widgets", "pods")
			switch {
			case strings.Contains(right, "*"):
				t.Errorf("a wildcard: %s", right)
			case containsAny(right, "escalate", "impersonate", "bind,", "serviceaccounts/token", "clusterrole"):
				t.Errorf("a way to more rights: %s", right)
			case strings.Contains(right, "secrets") && (!strings.Contains(right, "named ") || !strings.Contains(right, ", in "+rendered.Namespace)):
				t.Errorf("Secrets that are not named: %s", right)
			case workloadWrite:
				t.Errorf("a write of workloads: %s", right)
			}
		}
	})
}

// split says whether assessor and executor have accounts of their own.
func split(objects []*unstructured.Unstructured) bool {
	return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "ServiceAccount" && o.GetName() == "plumbline-assessor"
	})
}

// rightsOfAuthorities are the discovery server's, which brings one ConfigMap to every
// namespace with proxies and counts in another, and the API's, which brings one to its own
// namespace. A create cannot be bound to a name.
var rightsOfAuthorities = []string{
	"plumbline-api: create configmaps, in " + rendered.Namespace,
	"plumbline-api: get,list,watch,update,patch,delete configmaps named plumbline-api-ca, in " + rendered.Namespace,
	"plumbline-xds: create configmaps, everywhere",
	"plumbline-xds: get,list,watch,update,patch,delete configmaps named plumbline-xds-ca, everywhere",
	"plumbline-xds: get,list,watch,update configmaps named plumbline-xds-sequences, in " + rendered.Namespace,
}

// putsBack says whether a right is the executor's to write targets: never to delete
// one, and only in namespaces that were named. In the role that is bound nowhere it
// is nobody's right yet.
func putsBack(right string) bool {
	_, verbs, _ := strings.Cut(right, ": ")
	return strings.HasPrefix(verbs, "get,watch,create,update,patch ") && !strings.Contains(right, "secrets") &&
		(strings.HasPrefix(right, "role plumbline-executor-targets: ") && strings.HasSuffix(right, ", where bound") ||
			strings.HasPrefix(right, "plumbline-executor: ") && (strings.HasSuffix(right, ", in shop") || strings.HasSuffix(right, ", in web")))
}

func containsAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

func TestTheAssessorReadsExactlyTheGuardedKinds(t *testing.T) {
	objects := template(t, "--set-json", `guard.resources=[{"group":"apps","version":"v1","resource":"deployments"},{"group":"apps","version":"v1beta1","resource":"deployments"},`+
		`{"group":"","version":"v1","resource":"configmaps"},{"group":"example.com","version":"v1","resource":"widgets"},{"group":"example.com","version":"v1","resource":"gadgets"}]`)
	var got []string
	for _, right := range rights(t, objects) {
		if strings.HasPrefix(right, "plumbline-assessor: get,list,watch ") && !strings.Contains(right, "plumbline.dev") && !strings.Contains(right, "namespaces") {
			got = append(got, right)
		}
	}
	want := []string{
		"plumbline-assessor: get,list,watch configmaps, everywhere",
		"plumbline-assessor: get,list,watch deployments.apps, everywhere",
		"plumbline-assessor: get,list,watch widgets.example.com gadgets.example.com, everywhere",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOnlyPodsThatNeedATokenHaveOne(t *testing.T) {
	forEachValuesFile(t, func(t *testing.T, objects []*unstructured.Unstructured) {
		for _, object := range rendered.OfKind(objects, "ServiceAccount") {
			if automount, found, _ := unstructured.NestedBool(object.Object, "automountServiceAccountToken"); !found || automount {
				t.Errorf("service account %s hands its token to every pod that names it", object.GetName())
			}
		}
		for name, pod := range pods(t, objects) {
			neverRuns := strings.HasSuffix(name, "/plumbline-selftest-object")
			// A gateway has one for the discovery server alone.
			want := name != "Deployment/plumbline-system/plumbline-redis" && name != "Deployment/plumbline-system/plumbline-gateway" && !neverRuns
			if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken != want {
				t.Errorf("%s: automountServiceAccountToken = %v, want %v", name, pod.AutomountServiceAccountToken, want)
			}
			if !neverRuns && !slices.ContainsFunc(rendered.OfKind(objects, "ServiceAccount"), func(o *unstructured.Unstructured) bool { return o.GetName() == pod.ServiceAccountName }) {
				t.Errorf("%s runs as %q, which the chart does not have", name, pod.ServiceAccountName)
			}
		}
	})
}

// What is added when the discovery server changes weights of routes: patch of routes in the namespaces that are named.
func TestWhoMayDoWhatWhenRoutesOfGatewayAPIHaveWeights(t *testing.T) {
	without := rights(t, template(t, "--set", "mesh.enabled=true"))
	with := rights(t, template(t, "--set", "mesh.enabled=true", "--set", "routers.gatewayAPI.enabled=true", "--set", "routers.gatewayAPI.namespaces={shop,bank}"))
	added := slices.DeleteFunc(slices.Clone(with), func(line string) bool { return slices.Contains(without, line) })
	golden.Check(t, filepath.Join("testdata", "rights-gatewayapi.txt"), strings.Join(added, "\n")+"\n")
	if removed := slices.DeleteFunc(without, func(line string) bool { return slices.Contains(with, line) }); len(removed) > 0 {
		t.Errorf("routes take rights from others: %q", removed)
	}
}
