// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

const (
	rulesFile     = "../../charts/plumbline/files/alerts/plumbline.rules.yaml"
	testsFile     = "plumbline.rules.test.yaml"
	dashboardFile = "../../charts/plumbline/files/dashboards/plumbline.json"
	metricsPage   = "../../docs/reference/metrics.md"
	runbooks      = "../../docs/runbooks"
	runbookURL    = "https://github.com/plumbline-dev/plumbline/blob/main/docs/runbooks/"
)

// promtool runs the binary that PROMTOOL names, else builds the pinned one. The
// service discoveries, which are not needed here, would take most of its build.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	name := os.Getenv("PROMTOOL")
	if name == "" {
		name, args = "go", append([]string{"run", "-tags", "remove_all_sd", "github.com/prometheus/prometheus/cmd/promtool"}, args...)
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestPromtoolAcceptsTheRules(t *testing.T) {
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", rulesFile)
}

func TestAlertsFireAndStayQuietAsTheyShould(t *testing.T) {
	promtool(t, append([]string{"test", "rules"}, splitTests(t)...)...)
}

// rules reads all alerts by name.
func rules(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(rulesFile, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	alerts := map[string]rulefmt.Rule{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" || alerts[rule.Alert].Alert != "" {
				t.Errorf("%q is no alert, or twice there", rule.Alert+rule.Record)
			}
			alerts[rule.Alert] = rule
		}
	}
	if len(alerts) == 0 {
		t.Fatal("no alerts")
	}
	return alerts
}

func TestEveryAlertIsTestedBothWays(t *testing.T) {
	body, err := os.ReadFile(testsFile)
	if err != nil {
		t.Fatal(err)
	}
	expectation := regexp.MustCompile(`alertname: (\w+)\n\s+exp_alerts:( \[\])?`)
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, found := range expectation.FindAllStringSubmatch(string(body), -1) {
		if found[2] == "" {
			fires[found[1]] = true
		} else {
			quiet[found[1]] = true
		}
	}
	for name := range rules(t) {
		if !fires[name] || !quiet[name] {
			t.Errorf("%s: tested firing: %t, quiet: %t", name, fires[name], quiet[name])
		}
	}
}

func TestEveryAlertSaysWhatPeopleNeed(t *testing.T) {
	for name, rule := range rules(t) {
		if !strings.HasPrefix(name, "Plumbline") {
			t.Errorf("%s does not say whose it is", name)
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, rule.Labels["severity"]) {
			t.Errorf("%s has the severity %q", name, rule.Labels["severity"])
		}
		if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
			t.Errorf("%s has no summary or no description", name)
		}
		if got := rule.Annotations["runbook_url"]; got != runbookURL+name+".md" {
			t.Errorf("%s: runbook %q", name, got)
		}
	}
}

// sections are what each runbook page has.
var sections = []string{"## Meaning", "## Impact", "## Diagnosis", "## Fix"}

func TestEveryAlertHasARunbookPageAndEveryPageAnAlert(t *testing.T) {
	alerts := rules(t)
	pages, err := filepath.Glob(filepath.Join(runbooks, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, page := range pages {
		name := strings.TrimSuffix(filepath.Base(page), ".md")
		seen[name] = true
		if name == "README" {
			continue
		}
		if _, ok := alerts[name]; !ok {
			t.Errorf("%s belongs to no alert", page)
		}
		body, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text := string(body)
		for _, section := range sections {
			_, after, ok := strings.Cut(text, section+"\n")
			if content, _, _ := strings.Cut(after, "\n## "); !ok || strings.TrimSpace(content) == "" {
				t.Errorf("%s: no %q, or nothing in it", page, section)
			}
		}
		if !strings.HasPrefix(text, "# "+name+"\n") {
			t.Errorf("%s does not begin with its name", page)
		}
		if diagnosis, _, _ := strings.Cut(text, "## Fix"); !strings.Contains(diagnosis, "```\n") {
			t.Errorf("%s: the diagnosis has no command", page)
		}
	}
	for name := range alerts {
		if !seen[name] {
			t.Errorf("%s has no page", name)
		}
	}
	index, err := os.ReadFile(filepath.Join(runbooks, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range alerts {
		if !strings.Contains(string(index), "("+name+".md)") {
			t.Errorf("the list of runbooks does not name %s", name)
		}
	}
}

// metrics are those of the reference, with their labels.
func metrics(t *testing.T) map[string][]string {
	t.Helper()
	body, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `(plumbline_[a-z_]+)` \\| (.*?) \\|")
	known := map[string][]string{}
	for _, found := range row.FindAllStringSubmatch(string(body), -1) {
		known[found[1]] = append(known[found[1]], strings.FieldsFunc(found[2], func(r rune) bool { return r == '`' || r == ',' || r == ' ' })...)
	}
	if len(known) < 20 {
		t.Fatalf("only %d metrics in %s", len(known), metricsPage)
	}
	return known
}

// faults parses an expression and compares it with the metrics that exist.
func faults(expression string, known map[string][]string) []string {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	// Labels that scraping adds may be grouped by as well.
	available := []string{"instance", "job", "pod", "namespace", "le"}
	for _, selector := range nodes[*parser.VectorSelector](expr) {
		labelsOf, exists := known[family(selector.Name, known)]
		if !exists {
			found = append(found, "there is no metric "+selector.Name)
			continue
		}
		available = append(available, labelsOf...)
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name != model.MetricNameLabel && matcher.Name != "le" && !slices.Contains(labelsOf, matcher.Name) {
				found = append(found, selector.Name+" has no label "+matcher.Name)
			}
		}
	}
	for _, aggregate := range nodes[*parser.AggregateExpr](expr) {
		for _, label := range aggregate.Grouping {
			if !slices.Contains(available, label) {
				found = append(found, "nothing has the label "+label)
			}
		}
	}
	return found
}

// nodes are those parts of an expression that have one type.
func nodes[T parser.Node](expr parser.Expr) []T {
	var all []T
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if typed, ok := node.(T); ok {
			all = append(all, typed)
		}
		return nil
	})
	return all
}

// family drops what a histogram adds to its name.
func family(name string, known map[string][]string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, suffix); ok {
			if _, exists := known[base]; exists {
				return base
			}
		}
	}
	return name
}

func TestAlertsNameMetricsThatExist(t *testing.T) {
	known := metrics(t)
	for name, rule := range rules(t) {
		for _, fault := range faults(rule.Expr, known) {
			t.Errorf("%s: %s", name, fault)
		}
	}
}

func TestTheCheckFindsWhatDoesNotExist(t *testing.T) {
	known := map[string][]string{"plumbline_a": {"b"}}
	for name, expression := range map[string]string{
		"an unknown metric":   "plumbline_b",
		"an unknown label":    `plumbline_a{c="1"}`,
		"an unknown grouping": "sum by (c) (plumbline_a)",
		"no expression":       "sum by (",
	} {
		t.Run(name, func(t *testing.T) {
			if len(faults(expression, known)) == 0 {
				t.Errorf("%q was accepted", expression)
			}
		})
	}
}

type dashboard struct {
	UID        string `json:"uid"`
	Title      string `json:"title"`
	Templating struct {
		List []struct{ Name, Type string } `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Datasource  struct {
		UID string `json:"uid"`
	} `json:"datasource"`
	GridPos struct{ H, W, X, Y int } `json:"gridPos"`
	Targets []struct {
		RefID string `json:"refId"`
		Expr  string `json:"expr"`
	} `json:"targets"`
}

func TestTheDashboard(t *testing.T) {
	body, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(body, &d); err != nil {
		t.Fatal(err)
	}
	if d.UID == "" || len(d.Templating.List) != 1 || d.Templating.List[0].Type != "datasource" {
		t.Errorf("uid %q, variables %v: the data source has to be chosen by the user", d.UID, d.Templating.List)
	}
	known := metrics(t)
	ids := map[int]bool{}
	taken := map[[2]int]string{}
	expressions := 0
	for _, p := range d.Panels {
		if p.Title == "" || ids[p.ID] {
			t.Errorf("panel %d %q: no title, or the number is taken", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other, ok := taken[at]; ok || at[0] >= 24 {
					t.Fatalf("panel %q lies outside or over %q", p.Title, other)
				}
				taken[at] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("panel %q: description %q, data source %q, %d expressions", p.Title, p.Description, p.Datasource.UID, len(p.Targets))
		}
		for _, target := range p.Targets {
			expressions++
			for _, fault := range faults(target.Expr, known) {
				t.Errorf("panel %q: %s", p.Title, fault)
			}
		}
	}
	if expressions < 20 {
		t.Errorf("only %d expressions", expressions)
	}
}

// byHand are metrics for whoever looks into something.
var byHand = []string{
	// An agent runs in a pod of a user, and the alerts on proxies that are out of sync are about agents too.
	"plumbline_agent_answers_total", "plumbline_agent_connected", "plumbline_agent_proof_seconds", "plumbline_agent_unproven_total", "plumbline_agent_waiting",
	// Exceptions are made by tenants, with an end.
	"plumbline_exceptions",
	// A missing kind of report is the choice of the cluster's operator.
	"plumbline_report_errors_total",
	"plumbline_admission_connections", "plumbline_admission_connections_refused_total",
	"plumbline_admission_handshakes", "plumbline_admission_handshakes_refused_total", "plumbline_admission_handshakes_total",
	"plumbline_api_connections", "plumbline_api_connections_refused_total", "plumbline_api_handshake_errors_total", "plumbline_api_handshakes",
	"plumbline_api_handshakes_refused_total", "plumbline_api_handshakes_total", "plumbline_api_responses_total", "plumbline_api_review_hits_total", "plumbline_api_reviews_total",
	"plumbline_api_stream_ends_total", "plumbline_api_stream_resyncs_total", "plumbline_api_streams",
	"plumbline_assessor_completed_total", "plumbline_assessor_content_reads_total", "plumbline_assessor_events_suppressed_total", "plumbline_assessor_last_assessed_seconds", "plumbline_assessor_admission_record_gaps_total",
	"plumbline_assessor_object_cache_bytes", "plumbline_assessor_object_cache_limit_bytes", "plumbline_assessor_object_cache_partial_objects",
	"plumbline_assessor_admission_records_dropped_total",
	"plumbline_assessor_trim_failures_total", "plumbline_selftest_rounds_total",
	"plumbline_certificate_clock_ahead_seconds", "plumbline_certificate_leader",
	"plumbline_admission_records_redis_up",
	"plumbline_drift_check_age_seconds", "plumbline_drift_checks_due", "plumbline_drift_checks_overdue_seconds",
	"plumbline_drift_checks_running", "plumbline_drift_checks_total",
	"plumbline_drift_age_seconds", "plumbline_drift_oldest_seconds",
	"plumbline_fail_open", "plumbline_fail_open_calls_total", "plumbline_injection_pods_total", "plumbline_notifications_doubted_total", "plumbline_remediation_evidence_anchor_contradicted_total", "plumbline_remediation_evidence_keys_restored_total", "plumbline_remediation_mirror_puts_total", "plumbline_sweep_objects_total", "plumbline_sweeps_total",
	"plumbline_xds_connections", "plumbline_xds_handshake_errors_total", "plumbline_xds_handshakes", "plumbline_xds_handshakes_total",
	"plumbline_xds_sequences_bytes", "plumbline_xds_sequences_dropped_total", "plumbline_xds_sequences_entries",
}

// A metric that neither an alert nor the dashboard names is either superfluous
// or worth a look by hand; the list makes the choice a conscious one.
func TestMetricsThatNobodyLooksAt(t *testing.T) {
	used := map[string]bool{}
	rulesBody, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	dashboardBody, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	text := string(rulesBody) + string(dashboardBody)
	for name := range metrics(t) {
		used[name] = strings.Contains(text, name)
	}
	var unused []string
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if !used[name] && !slices.Contains(byHand, name) {
			unused = append(unused, name)
		}
	}
	if len(unused) > 0 {
		t.Errorf("put these into an alert, the dashboard, or byHand: %v", unused)
	}
}
