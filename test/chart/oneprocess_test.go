// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/test/harness/golden"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// inOneProcess renders the chart with an assessor that carries plans out.
func inOneProcess(t *testing.T, args ...string) []*unstructured.Unstructured {
	t.Helper()
	return executing(t, append([]string{"--set", "assessor.split=false", "--set", "assessor.replicas=1"}, args...)...)
}

const (
	assessorUser = "system:serviceaccount:plumbline-system:plumbline-assessor"
	executorUser = "system:serviceaccount:plumbline-system:plumbline-executor"
)

func TestInOneProcessThereIsOneDeploymentAndOneAccount(t *testing.T) {
	objects := inOneProcess(t, "--set", "notifications.secrets={chat}")
	var found []string
	for _, kind := range []string{"Deployment", "ServiceAccount", "NetworkPolicy", "PodDisruptionBudget"} {
		for _, object := range rendered.OfKind(objects, kind) {
			found = append(found, kind+"/"+object.GetName())
		}
	}
	want := []string{
		"Deployment/plumbline-assessor", "Deployment/plumbline-redis", "Deployment/plumbline-webhook",
		"NetworkPolicy/plumbline-assessor", "NetworkPolicy/plumbline-redis", "NetworkPolicy/plumbline-webhook",
		"PodDisruptionBudget/plumbline-webhook",
		"ServiceAccount/plumbline-executor", "ServiceAccount/plumbline-install-test", "ServiceAccount/plumbline-redis", "ServiceAccount/plumbline-webhook",
	}
	slices.Sort(found)
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, right := range rights(t, objects) {
		if strings.HasPrefix(right, "plumbline-assessor:") {
			t.Errorf("an account that is not there has a right: %s", right)
		}
	}
}

// One account has the rights of both and no others, and nobody has fewer.
func TestWhoMayDoWhatInOneProcess(t *testing.T) {
	values := []string{"--set", "executor.namespaces={shop}", "--set", "notifications.secrets={chat}"}
	apart := rights(t, executing(t, values...))
	for i := range apart {
		apart[i] = strings.Replace(apart[i], "plumbline-assessor:", "plumbline-executor:", 1)
	}
	slices.Sort(apart)
	together := slices.Compact(rights(t, inOneProcess(t, values...)))
	if diff := cmp.Diff(slices.Compact(apart), together); diff != "" {
		t.Errorf("(-apart +in one process):\n%s", diff)
	}
}

func TestTheOneProcessIsToldWhatBothAre(t *testing.T) {
	args := func(objects []*unstructured.Unstructured, name string) []string {
		return convert[appsv1.Deployment](t, find(t, objects, "Deployment", name)).Spec.Template.Spec.Containers[0].Args
	}
	values := []string{"--set", "executor.evidence.url=s3://b", "--set", "executor.caps.maxPerDay=7", "--set", "executor.evidence.serve=true", "--set", "executor.evidence.oldKeysSecret=before"}
	apart, together := executing(t, values...), inOneProcess(t, values...)
	want := append(args(apart, "plumbline-assessor"), args(apart, "plumbline-executor")...)
	want = slices.DeleteFunc(want, func(arg string) bool { return strings.HasPrefix(arg, "--role=") })
	want = append(want, "--role=assess,execute")
	slices.Sort(want)
	got := args(together, "plumbline-assessor")
	slices.Sort(got)
	if diff := cmp.Diff(slices.Compact(want), got); diff != "" {
		t.Errorf("(-both +the one):\n%s", diff)
	}
}

// The policies know the account by its name, whichever it is.
func TestThePoliciesHoldForTheOneAccount(t *testing.T) {
	for _, policy := range rendered.OfKind(inOneProcess(t), "ValidatingAdmissionPolicy") {
		if strings.Contains(fmt.Sprint(policy.Object["spec"]), assessorUser) {
			t.Errorf("%s speaks of an account that is not there", policy.GetName())
		}
	}
	const only = "no other field of this status"
	for name, objects := range map[string][]*unstructured.Unstructured{"apart": executing(t), "in one process": inOneProcess(t)} {
		marks := fmt.Sprint(find(t, objects, "ValidatingAdmissionPolicy", "plumbline-executor-marks").Object["spec"])
		if !strings.Contains(marks, executorUser) || !strings.Contains(marks, "only the executor writes status.") {
			t.Errorf("%s: anybody moves the marks", name)
		}
		// The assessor writes the rest of these statuses.
		if got := strings.Contains(marks, only); got != (name == "apart") {
			t.Errorf("%s: the executor is kept from the rest of the status: %v", name, got)
		}
	}
}

func TestSplitMattersOnlyWithAnExecutor(t *testing.T) {
	if diff := cmp.Diff(manifest(t), manifest(t, "--set", "assessor.split=false")); diff != "" {
		t.Errorf("without an executor (-split +not split):\n%s", diff)
	}
}

// manifest renders the chart without what differs between two renders.
func manifest(t *testing.T, args ...string) string {
	t.Helper()
	return random.ReplaceAllString(render(t, true, args...).text, "${1}<random>")
}

func TestTheVolumeOfTheOneProcess(t *testing.T) {
	d := convert[appsv1.Deployment](t, find(t, inOneProcess(t), "Deployment", "plumbline-assessor"))
	if d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Errorf("two pods would want one volume: %s", d.Spec.Strategy.Type)
	}
	_, err := helm.Template(t.Context(), "--set", "executor.enabled=true", "--set", "assessor.split=false")
	if err == nil || !strings.Contains(err.Error(), "assessor.replicas: a second replica could not mount the evidence") {
		t.Errorf("two replicas on one volume: %v", err)
	}
}

// What a person reads after an installation.
func TestTheNotesSayWhatOneProcessMeans(t *testing.T) {
	for name, args := range map[string][]string{
		"apart":          {"--set", "executor.enabled=true"},
		"in one process": {"--set", "executor.enabled=true", "--set", "assessor.split=false", "--set", "assessor.replicas=1"},
	} {
		if got := strings.Contains(notesOf(t, args...), "WARNING: assessor.split is false"); got != (name == "in one process") {
			t.Errorf("%s: the notes warn: %v", name, got)
		}
	}
}

// The schema refuses a cap of 0. Where it is switched off, 0 is not "no cap".
func TestACapOfNothingIsNeverNoCap(t *testing.T) {
	for _, name := range []string{"maxConcurrent", "maxPerHour", "maxPerDay"} {
		if _, err := helm.Template(t.Context(), "--set", "executor.enabled=true", "--set", "executor.caps."+name+"=0"); err == nil || !strings.Contains(err.Error(), "/executor/caps/"+name) {
			t.Errorf("%s=0: %v", name, err)
		}
	}
	d := executorOf(t, executing(t, "--skip-schema-validation",
		"--set", "executor.caps.maxConcurrent=0", "--set-string", "executor.caps.maxPerHour=0", "--set-json", "executor.caps.maxPerDay=0.0"))
	var caps []string
	for _, arg := range d.Spec.Template.Spec.Containers[0].Args {
		if strings.HasPrefix(arg, "--max-") {
			caps = append(caps, arg)
		}
	}
	if diff := cmp.Diff([]string{"--max-concurrent=0", "--max-per-day=0", "--max-per-hour=0"}, caps); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhoMayDoWhatInOneProcessIsWrittenDown(t *testing.T) {
	var lines []string
	for _, right := range rights(t, inOneProcess(t, "--set", "executor.namespaces={shop}")) {
		if strings.HasPrefix(right, "plumbline-executor:") {
			lines = append(lines, right)
		}
	}
	golden.Check(t, filepath.Join("testdata", "rights-oneprocess.txt"), strings.Join(lines, "\n")+"\n")
}
