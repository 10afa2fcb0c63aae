// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/test/harness/child"
)

// abandoned are spellings and names that the project has given up, each with the one in use:
// docs/designs/0008-api.md lists them.
var abandoned = map[string]*regexp.Regexp{
	"US spelling":                            regexp.MustCompile(`(?i)authoris|stabilis|cancell(ed|ing|er)\b|labell|catalogu|colou[r]|judgemen|recognis|normali[s]|summaris|neighbou|behaviou|honou[r]|favou[r]`),
	"selftest":                               regexp.MustCompile(`plumbline[-_]canary|PlumblineCanary|canary\.(enabled|namespace|period|deadline)|role=canary|controller/canary`),
	"the strategy Staged":                    regexp.MustCompile(`StrategyCanary|strategy: Canary`),
	"the drift types Image and Scale":        regexp.MustCompile(`Drift(Digest|Status)Mismatch|digest_mismatch|status_mismatch`),
	"spec.override of a RemediationLedger":   regexp.MustCompile(`LedgerGrant\b|spec\.grant\b`),
	"status.planName, lastPlanName":          regexp.MustCompile(`status\.(claim|lastPlan)\b`),
	"names of times that end in Time":        regexp.MustCompile(`status\.(firstSeen|lastCheck|nextCheck|retiredAt|startedAt|completedAt|managedSince|inForceSince|grantsFrom|nextLook)\b`),
	"environmentName of a RemediationPolicy": regexp.MustCompile(`spec\.environment\b`),
}

func TestNoAbandonedNameIsLeft(t *testing.T) {
	list := child.Bind(exec.Command("git", "ls-files", "-z"))
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("listing the files of the project: %v", err)
	}
	read := 0
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if strings.Contains(name, "testdata/rapid") || strings.Contains(name, "testdata/fuzz") || name == "test/arch/names_test.go" || name == "docs/designs/0008-api.md" {
			continue
		}
		body, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) { // removed, and not committed yet
			continue
		}
		if err != nil {
			t.Fatalf("reading a file of the project: %v", err)
		}
		read++
		for use, old := range abandoned {
			if at := old.FindIndex(body); at != nil {
				t.Errorf("%s:%d: %q is abandoned: use %s", name, 1+bytes.Count(body[:at[0]], []byte("\n")), body[at[0]:at[1]], use)
			}
			if found := old.FindString(name); found != "" {
				t.Errorf("%s: the name of the file has %q: use %s", name, found, use)
			}
		}
	}
	if read < 1000 {
		t.Errorf("only %d files were read", read)
	}
}

// The API conventions of Kubernetes: "should be called somethingTime".
func TestEachTimeOfAKindEndsInTime(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "charts/plumbline/files/crds/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	times := 0
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("reading a CustomResourceDefinition: %v", err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(body, &crd); err != nil {
			t.Fatalf("reading %s: %v", file, err)
		}
		for _, version := range crd.Spec.Versions {
			times += checkTimes(t, crd.Spec.Names.Kind, version.Schema.OpenAPIV3Schema)
		}
	}
	if times < 30 {
		t.Errorf("only %d times were found", times)
	}
}

func checkTimes(t *testing.T, path string, schema *apiextensionsv1.JSONSchemaProps) (times int) {
	t.Helper()
	if schema.Format == "date-time" {
		times++
		if !strings.HasSuffix(path, "Time") {
			t.Errorf("%s is a time, and its name does not end in Time", path)
		}
	}
	for name, property := range schema.Properties {
		times += checkTimes(t, path+"."+name, &property)
	}
	if schema.Items != nil {
		times += checkTimes(t, path+"[]", schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		times += checkTimes(t, path+"{}", schema.AdditionalProperties.Schema)
	}
	return times
}
