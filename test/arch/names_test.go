// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/test/harness/child"
)

// abandonment is a name that the project has given up. A file that has the text is searched
// with the expression, which is slow.
type abandonment struct {
	texts []string
	use   string
	old   *regexp.Regexp
}

// abandoned are the names that docs/designs/0008-api.md lists, each with the one in use. The
// texts are in lower case, and are looked for in whatever case.
var abandoned = []abandonment{
	{[]string{"authoris", "stabilis", "cancelled", "cancelling", "canceller", "labelled", "catalogue", "colour", "judgement", "recognis", "normali" + "s", "summaris", "neighbour", "behaviour", "honour", "favour"},
		"US spelling", regexp.MustCompile(`(?i)authoris|stabilis|cancell(ed|ing|er)\b|labelled|catalogue|colour|judgement|recognis|normali[s]|summaris|neighbour|behaviour|honour|favour`)},
	{[]string{"canary"}, "selftest", regexp.MustCompile(`plumbline[-_]canary|PlumblineCanary|canary\.(enabled|namespace|period|deadline)|role=canary|controller/canary`)},
	{[]string{"canary"}, "the strategy Staged", regexp.MustCompile(`StrategyCanary|strategy: Canary`)},
	{[]string{"mismatch"}, "the drift types Image and Scale", regexp.MustCompile(`Drift(Digest|Status)Mismatch|digest_mismatch|status_mismatch`)},
	{[]string{"grant"}, "spec.override of a RemediationLedger", regexp.MustCompile(`LedgerGrant\b|spec\.grant\b`)},
	{[]string{"status.claim", "status.lastplan"}, "status.planName, lastPlanName", regexp.MustCompile(`status\.(claim|lastPlan)\b`)},
	{[]string{"status."}, "names of times that end in Time", regexp.MustCompile(`status\.(firstSeen|lastCheck|nextCheck|retiredAt|startedAt|completedAt|managedSince|inForceSince|grantsFrom|nextLook)\b`)},
	{[]string{"condition", "sharenotexclusive", "type==", `type":`}, "the condition Degraded, or one of positive polarity",
		regexp.MustCompile(`Condition(Clamped|ShareNotExclusive|NotYetRedirected|Contradicted|Contended|AcceptRefused|MassDrift|BreakerOpen|Frozen|SelectsNothing|SelectsEverything|Overlaps)\b|ShareNotExclusive|(condition[:=]? ?\x60?|type=="|type": ?")(Clamped|NotYetRedirected|Contradicted|Contended|AcceptRefused|MassDrift|BreakerOpen|Frozen|SelectsNothing|SelectsEverything|Overlaps)\b`)},
	{[]string{"spec.environment"}, "spec.environmentName", regexp.MustCompile(`spec\.environment\b`)},
	{[]string{"foreign"}, "the class Untrusted", regexp.MustCompile(`ActorForeign|class="foreign"|\(Foreign, |class: Foreign\b`)},
	{[]string{"flip"}, "reversal", regexp.MustCompile(`FlipPlace|status\.flips|"flips"|\[\]Flip\b`)},
	{[]string{"inforce", "in_force"}, "effective of a split, active of a guard, enforced of Deny",
		regexp.MustCompile(`SplitInForce|VariationInForce|status\.inForce|"(Not|Older|GuardNot|PolicyNot|NotYet)?InForce"|stamp_policy_in_force`)},
	{[]string{"laggard"}, "out of sync", regexp.MustCompile(`(?i)laggard`)},
	{[]string{"confirm"}, "acknowledged", regexp.MustCompile(`ConditionConfirmed|ConfirmedKnowledge|status\.confirmed|spec\.confirmation|xds_(un)?confirmed`)},
	{[]string{"nobodyroutes"}, "NoProxies", regexp.MustCompile(`NobodyRoutes`)},
	{[]string{"details_", "records_", "record_gaps", "authority_", "withheld_clusters"}, "the metrics of admission records, of the CA and of Envoy clusters",
		regexp.MustCompile(`plumbline_(details_|assessor_record|xds_authority_|xds_withheld_clusters)`)},
	{[]string{"detailsdropped", "clusterswithheld", "evidenceunreadable", "authoritystale", "proxiesrefuse", "policyaway", "replicasunheard", "guardinert", "guardsunread"}, "the alert that 0008 names",
		regexp.MustCompile(`Plumbline(DetailsDropped|ClustersWithheld|EvidenceUnreadable|ProxyAuthorityStale|ProxiesRefuse\b|StampPolicyAway|ReplicasUnheard|GuardInert|GuardsUnread)`)},
}

// foreign are names of other projects that are spelled otherwise, and words that the REST API has
// from a published design.
var foreign = regexp.MustCompile("upstream_rq_\\(?cancelled|([\"`=]|- )(cancelled|(digest|status)_mismatch)\\b")

// find returns where the name is in a body; nil if it is not there.
func (a *abandonment) find(body, lower []byte) []int {
	if !slices.ContainsFunc(a.texts, func(text string) bool { return bytes.Contains(lower, []byte(text)) }) {
		return nil
	}
	return a.old.FindIndex(body)
}

// projectFiles returns the paths of the files that git tracks, from the root of the project.
func projectFiles(t *testing.T) []string {
	t.Helper()
	list := child.Bind(exec.Command("git", "ls-files", "-z"))
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("listing the files of the project: %v", err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

func TestNoAbandonedNameIsLeft(t *testing.T) {
	read := 0
	for _, name := range projectFiles(t) {
		if strings.Contains(name, "testdata/rapid") || strings.Contains(name, "testdata/fuzz") || name == "test/arch/names_test.go" || name == "docs/designs/0008-api.md" ||
			name == "docs/reference/glossary.md" || strings.Contains(name, "testdata/axe/") {
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
		body = foreign.ReplaceAll(body, nil)
		path, text := []byte(name), bytes.ToLower(body)
		for i := range abandoned {
			a := &abandoned[i]
			if at := a.find(body, text); at != nil {
				t.Errorf("%s:%d: %q is abandoned: use %s", name, 1+bytes.Count(body[:at[0]], []byte("\n")), body[at[0]:at[1]], a.use)
			}
			if a.find(path, bytes.ToLower(path)) != nil {
				t.Errorf("%s: the file has an abandoned name: use %s", name, a.use)
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
