// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// executing renders the chart with the executor, and further arguments.
func executing(t *testing.T, args ...string) []*unstructured.Unstructured {
	t.Helper()
	return template(t, append([]string{"--set", "executor.enabled=true"}, args...)...)
}

func executorOf(t *testing.T, objects []*unstructured.Unstructured) *appsv1.Deployment {
	t.Helper()
	return convert[appsv1.Deployment](t, find(t, objects, "Deployment", "plumbline-executor"))
}

// Nothing of a cluster is changed before somebody turns it on.
func TestByDefaultThereIsNoExecutor(t *testing.T) {
	for _, object := range template(t) {
		if strings.Contains(object.GetName(), "executor") && object.GetName() != "plumbline-executor-marks" || object.GetName() == "plumbline-evidence" {
			t.Errorf("the chart has %s by default", rendered.ID(object))
		}
	}
	args := convert[appsv1.Deployment](t, find(t, template(t), "Deployment", "plumbline-assessor")).Spec.Template.Spec.Containers[0].Args
	if slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--executor-user") }) {
		t.Errorf("the assessor is told of an executor that is not there: %q", args)
	}
}

// Its writes are no drift because the assessor knows it by name.
func TestTheAssessorKnowsTheExecutorByItsServiceAccount(t *testing.T) {
	for namespace, args := range map[string][]string{"plumbline-system": nil, "elsewhere": {"--namespace", "elsewhere"}} {
		objects := executing(t, args...)
		d := executorOf(t, objects)
		want := "--executor-user=system:serviceaccount:" + namespace + ":" + d.Spec.Template.Spec.ServiceAccountName
		got := convert[appsv1.Deployment](t, find(t, objects, "Deployment", "plumbline-assessor")).Spec.Template.Spec.Containers[0].Args
		if d.Namespace != namespace || !slices.Contains(got, want) {
			t.Errorf("the assessor is not told %s: %q", want, got)
		}
	}
}

func TestTheExecutorsArguments(t *testing.T) {
	common := []string{
		"--namespace=$(POD_NAMESPACE)", "--metrics-address=:8080", "--health-address=:8081", "--log-format=json", "--log-level=info",
		"--redis-address=", "--redis-key-prefix=plumbline", "--redis-timeout=50ms",
	}
	first := []string{"--role=execute", "--leader-elect=true"}
	const key, volume, served = "--evidence-key-file=/var/run/secrets/plumbline-evidence/key.pem", "--evidence=file:///var/lib/plumbline/evidence", "--serve-evidence=false"
	tests := map[string]struct {
		args, want []string
	}{
		"by default": {nil, []string{volume, key, served, "--max-concurrent=10", "--max-per-day=500", "--max-per-hour=100"}},
		"without caps": {[]string{"--set", "executor.caps.maxConcurrent=null", "--set-string", "executor.caps.maxPerHour=", "--set", "executor.caps.maxPerDay="},
			[]string{volume, key, served, "--max-concurrent=-1", "--max-per-day=-1", "--max-per-hour=-1"}},
		"with keys of before": {[]string{"--set", "executor.evidence.oldKeysSecret=before"},
			[]string{volume, key, served, "--evidence-old-keys-file=/var/run/secrets/plumbline-evidence-old/keys.pem", "--max-concurrent=10", "--max-per-day=500", "--max-per-hour=100"}},
		"with evidence in a bucket": {[]string{"--set", "executor.evidence.url=s3://b?region=r&prefix=p/", "--set", "executor.caps.maxPerDay=1000"},
			[]string{"--evidence=s3://b?region=r&prefix=p/", key, served, "--max-concurrent=10", "--max-per-day=1000", "--max-per-hour=100"}},
		"networks that nobody may be told in": {[]string{"--set", "notifications.allowedNetworks={10.0.0.0/8}", "--set", "notifications.plainHTTP=true"},
			[]string{volume, key, served, "--max-concurrent=10", "--max-per-day=500", "--max-per-hour=100"}},
		"networks in which somebody is told": {[]string{"--set", "notifications.secrets={chat}", "--set", "notifications.allowedNetworks={10.0.0.0/8,fd00::/8}", "--set", "notifications.plainHTTP=true"},
			[]string{volume, key, served, "--max-concurrent=10", "--max-per-day=500", "--max-per-hour=100", "--notify-allowed-networks=10.0.0.0/8,fd00::/8", "--notify-plain-http=true"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects := executing(t, append(test.args, "--set", "redis.enabled=false")...)
			if diff := cmp.Diff(slices.Concat(first, test.want, common), executorOf(t, objects).Spec.Template.Spec.Containers[0].Args); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// place is where evidence is kept, and what follows from it.
type place struct {
	Volume   *corev1.VolumeSource
	Claim    bool
	Strategy appsv1.DeploymentStrategyType
	Secrets  []string // as environment
}

func TestWhereEvidenceIsKept(t *testing.T) {
	claim := func(name string) *corev1.VolumeSource {
		return &corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
	}
	tests := map[string]struct {
		args []string
		want place
	}{
		"by default in a claim of the chart's": {nil, place{Volume: claim("plumbline-evidence"), Claim: true, Strategy: appsv1.RecreateDeploymentStrategyType}},
		"in a claim of somebody else's": {[]string{"--set", "executor.evidence.volume.source.persistentVolumeClaim.claimName=mine"},
			place{Volume: claim("mine"), Strategy: appsv1.RollingUpdateDeploymentStrategyType}},
		"in what goes with the pod, if that is meant": {[]string{"--set-json", "executor.evidence.volume.source.emptyDir={}", "--set", "executor.evidence.volume.mayBeLost=true"},
			place{Volume: &corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, Strategy: appsv1.RollingUpdateDeploymentStrategyType}},
		"in a bucket": {[]string{"--set", "executor.evidence.url=s3://b", "--set", "executor.evidence.credentialsSecret=keys"},
			place{Strategy: appsv1.RollingUpdateDeploymentStrategyType, Secrets: []string{"keys"}}},
		"in a bucket that needs no credentials": {[]string{"--set", "executor.evidence.url=s3://b"},
			place{Strategy: appsv1.RollingUpdateDeploymentStrategyType}},
		"credentials are no use for a volume": {[]string{"--set", "executor.evidence.credentialsSecret=keys"},
			place{Volume: claim("plumbline-evidence"), Claim: true, Strategy: appsv1.RecreateDeploymentStrategyType}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, placeOf(t, executing(t, test.args...))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func placeOf(t *testing.T, objects []*unstructured.Unstructured) place {
	t.Helper()
	d := executorOf(t, objects)
	found := place{Strategy: d.Spec.Strategy.Type}
	for _, claim := range rendered.OfKind(objects, "PersistentVolumeClaim") {
		found.Claim = found.Claim || claim.GetName() == "plumbline-evidence"
	}
	container := d.Spec.Template.Spec.Containers[0]
	mounted := slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool {
		return m.Name == "evidence" && m.MountPath == "/var/lib/plumbline/evidence" && !m.ReadOnly
	})
	for _, volume := range d.Spec.Template.Spec.Volumes {
		if volume.Name == "evidence" && mounted {
			found.Volume = &volume.VolumeSource
		}
	}
	for _, source := range container.EnvFrom {
		found.Secrets = append(found.Secrets, source.SecretRef.Name)
	}
	return found
}

// What an uninstall takes away could not be verified any more.
func TestEvidenceItsKeysAndItsVolumeOutliveTheRelease(t *testing.T) {
	objects := executing(t, "--set", "executor.evidence.volume.size=7Gi", "--set", "executor.evidence.volume.storageClassName=fast")
	for _, kind := range []string{"Secret", "ConfigMap", "PersistentVolumeClaim"} {
		if got := find(t, objects, kind, "plumbline-evidence").GetAnnotations()["helm.sh/resource-policy"]; got != "keep" {
			t.Errorf("%s: resource policy %q, want keep", kind, got)
		}
	}
	anchor := convert[corev1.ConfigMap](t, find(t, objects, "ConfigMap", "plumbline-evidence-anchor"))
	if anchor.Annotations["helm.sh/resource-policy"] != "keep" || anchor.Data != nil {
		t.Errorf("an uninstall takes the anchor away, or an upgrade what is in it: %v", anchor)
	}
	claim := convert[corev1.PersistentVolumeClaim](t, find(t, objects, "PersistentVolumeClaim", "plumbline-evidence"))
	want := corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: new("fast"),
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("7Gi")}},
	}
	if diff := cmp.Diff(want, claim.Spec); diff != "" {
		t.Errorf("claim (-want +got):\n%s", diff)
	}
	if data := convert[corev1.ConfigMap](t, find(t, objects, "ConfigMap", "plumbline-evidence")).Data; data != nil {
		t.Errorf("the chart writes the public key, and an upgrade would take it away: %v", data)
	}
}

func TestTheKeyOfTheChartSignsEvidence(t *testing.T) {
	secret := convert[corev1.Secret](t, find(t, executing(t), "Secret", "plumbline-evidence"))
	first, err := evidence.ParsePrivateKey(secret.Data["key.pem"])
	if err != nil {
		t.Fatal(err)
	}
	again := templateAgain(t, "--set", "executor.enabled=true")
	second, err := evidence.ParsePrivateKey(convert[corev1.Secret](t, find(t, again, "Secret", "plumbline-evidence")).Data["key.pem"])
	if err != nil {
		t.Fatal(err)
	}
	if first.KeyID() == second.KeyID() {
		t.Error("two installations have the same key")
	}
	for _, object := range rendered.OfKind(executing(t, "--set", "executor.evidence.existingSecret=mine"), "Secret") {
		if object.GetName() == "plumbline-evidence" {
			t.Error("the chart makes a key although there is one")
		}
	}
}

func TestWhatTheExecutorIsNotInstalledWith(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"evidence that goes with the pod": {[]string{"--set-json", "executor.evidence.volume.source.emptyDir={}"}, "an emptyDir volume goes with its pod, and the evidence with it"},
		"a claim that goes with the pod":  {[]string{"--set-json", "executor.evidence.volume.source.ephemeral={}"}, "an ephemeral volume goes with its pod"},
		"two replicas on one volume":      {[]string{"--set", "executor.replicas=2"}, "a second replica could not mount the evidence on another node"},
		"the system's own namespace":      {[]string{"--set", "executor.namespaces={shop,kube-system}"}, "kube-system is excluded from admission"},
		"its own namespace":               {[]string{"--set", "executor.namespaces={plumbline-system}"}, "plumbline-system is excluded from admission"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := helm.Template(t.Context(), append([]string{"--set", "executor.enabled=true"}, test.args...)...)
			var failed *rendered.Error
			if !errors.As(err, &failed) || !strings.Contains(failed.Stderr, test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// In a namespace that nobody bound it may write nothing, and what gives rights it
// may write nowhere, even if such kinds are guarded.
func TestTheExecutorWritesGuardedKindsWhereItIsBound(t *testing.T) {
	tests := map[string]struct {
		args  []string
		rules []string
		in    []string
	}{
		"by default nowhere":               {nil, []string{"apps: deployments,statefulsets,daemonsets", "batch: cronjobs"}, nil},
		"in the namespaces that are named": {[]string{"--set", "executor.namespaces={shop,web}"}, []string{"apps: deployments,statefulsets,daemonsets", "batch: cronjobs"}, []string{"shop", "web"}},
		"other guarded kinds": {[]string{"--set-json", `guard.resources=[{"group":"example.com","version":"v1","resource":"widgets"},{"group":"","version":"v1","resource":"configmaps"}]`},
			[]string{": configmaps", "example.com: widgets"}, nil},
		"guarded roles and service accounts": {[]string{"--set-json", `guard.resources=[{"group":"rbac.authorization.k8s.io","version":"v1","resource":"roles"},{"group":"","version":"v1","resource":"serviceaccounts"}]`}, nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects := executing(t, test.args...)
			var rules, namespaces []string
			for _, rule := range convert[rbacv1.ClusterRole](t, find(t, objects, "ClusterRole", "plumbline-executor-targets")).Rules {
				rules = append(rules, strings.Join(rule.APIGroups, ",")+": "+strings.Join(rule.Resources, ","))
				if diff := cmp.Diff([]string{"get", "watch", "create", "update", "patch"}, rule.Verbs); diff != "" {
					t.Errorf("verbs (-want +got):\n%s", diff)
				}
			}
			for _, object := range rendered.OfKind(objects, "RoleBinding") {
				if binding := convert[rbacv1.RoleBinding](t, object); binding.RoleRef.Name == "plumbline-executor-targets" {
					namespaces = append(namespaces, binding.Namespace)
				}
			}
			for _, object := range rendered.OfKind(objects, "ClusterRoleBinding") {
				if convert[rbacv1.ClusterRoleBinding](t, object).RoleRef.Name == "plumbline-executor-targets" {
					t.Error("it may write in every namespace")
				}
			}
			if diff := cmp.Diff(test.rules, rules); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.in, namespaces); diff != "" {
				t.Errorf("namespaces (-want +got):\n%s", diff)
			}
		})
	}
}

// openings are the ports that a pod may reach anywhere, beside the API server and DNS.
func openings(t *testing.T, objects []*unstructured.Unstructured, component string) []int {
	t.Helper()
	var ports []int
	policy := convert[networkingv1.NetworkPolicy](t, find(t, objects, "NetworkPolicy", "plumbline-"+component))
	for _, rule := range policy.Spec.Egress[2:] {
		for _, port := range rule.Ports {
			if len(rule.To) == 0 {
				ports = append(ports, port.Port.IntValue())
			}
		}
	}
	return ports
}

func TestWhoMayCallOut(t *testing.T) {
	tests := map[string]struct {
		args               []string
		executor, assessor []int
	}{
		"by default nobody":           {nil, nil, nil},
		"to tell people, both":        {[]string{"--set", "notifications.secrets={chat}"}, []int{443, 465, 587}, []int{443, 465, 587}},
		"to keep evidence, one":       {[]string{"--set", "executor.evidence.url=s3://b"}, []int{443, 465, 587}, nil},
		"only at the ports one names": {[]string{"--set", "notifications.secrets={chat}", "--set", "outbound.ports={8443}"}, []int{8443}, []int{8443}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects := executing(t, test.args...)
			if diff := cmp.Diff([][]int{test.executor, test.assessor, nil},
				[][]int{openings(t, objects, "executor"), openings(t, objects, "assessor"), openings(t, objects, "webhook")}); diff != "" {
				t.Errorf("executor, assessor and webhook (-want +got):\n%s", diff)
			}
		})
	}
}

func TestServersOutsideAreKnownByTheGivenAuthorities(t *testing.T) {
	trusts := func(t *testing.T, objects []*unstructured.Unstructured, name string) bool {
		t.Helper()
		pod := convert[appsv1.Deployment](t, find(t, objects, "Deployment", name)).Spec.Template.Spec
		env := slices.Contains(pod.Containers[0].Env, corev1.EnvVar{Name: "SSL_CERT_FILE", Value: "/var/run/secrets/plumbline-outbound-ca/ca.crt"})
		mount := slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
			return m.Name == "outbound-ca" && m.MountPath == "/var/run/secrets/plumbline-outbound-ca" && m.ReadOnly
		})
		volume := slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
			return v.Name == "outbound-ca" && v.Secret.SecretName == "roots" && v.Secret.Items[0].Path == "ca.crt"
		})
		if env != mount || env != volume {
			t.Errorf("%s: variable %v, mount %v, volume %v", name, env, mount, volume)
		}
		return env
	}
	tests := map[string]struct {
		args               []string
		executor, assessor bool
	}{
		"by default none":                        {nil, false, false},
		"the executor's":                         {[]string{"--set", "outbound.caSecret=roots"}, true, false},
		"the assessor's too, if it tells people": {[]string{"--set", "outbound.caSecret=roots", "--set", "notifications.secrets={chat}"}, true, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects := executing(t, test.args...)
			if got := trusts(t, objects, "plumbline-executor"); got != test.executor {
				t.Errorf("the executor: %v, want %v", got, test.executor)
			}
			if got := trusts(t, objects, "plumbline-assessor"); got != test.assessor {
				t.Errorf("the assessor: %v, want %v", got, test.assessor)
			}
		})
	}
}

// What was authorized may be put back where a guard denies everybody else.
func TestNoDenyGuardRefusesTheExecutor(t *testing.T) {
	const user = "system:serviceaccount:plumbline-system:plumbline-executor"
	for name, objects := range map[string][]*unstructured.Unstructured{"with": executing(t), "without": template(t)} {
		policy := fmt.Sprint(find(t, objects, "ValidatingAdmissionPolicy", "plumbline-deny").Object["spec"])
		if got := strings.Contains(policy, user); got != (name == "with") {
			t.Errorf("%s an executor, it is exempt: %v", name, got)
		}
	}
}

func TestTheExecutorHasADisruptionBudgetWhenThereAreSeveral(t *testing.T) {
	several := executing(t, "--set", "executor.evidence.url=s3://b", "--set", "executor.replicas=2")
	budget := convert[policyv1.PodDisruptionBudget](t, find(t, several, "PodDisruptionBudget", "plumbline-executor"))
	if diff := cmp.Diff(executorOf(t, several).Spec.Selector, budget.Spec.Selector); diff != "" {
		t.Errorf("it is for other pods (-deployment +budget):\n%s", diff)
	}
	for _, object := range rendered.OfKind(executing(t), "PodDisruptionBudget") {
		if object.GetName() == "plumbline-executor" {
			t.Error("a single one keeps its node from being drained")
		}
	}
}

func TestTheExecutorIsScraped(t *testing.T) {
	monitor := convert[podMonitor](t, find(t, template(t, "--values", filepath.Join(rendered.ChartDir(), "ci", "full-values.yaml")), "PodMonitor", "plumbline"))
	if !slices.Contains(monitor.Spec.Selector.MatchExpressions[0].Values, "executor") {
		t.Errorf("it selects %v", monitor.Spec.Selector)
	}
}
