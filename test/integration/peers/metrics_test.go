// SPDX-License-Identifier: Apache-2.0

//go:build integration

package peers

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/plumbline-dev/plumbline/test/harness"
)

// metricsPage reads the metrics of the API server.
func metricsPage(b *testing.B, w *world) string {
	b.Helper()
	client, err := kubernetes.NewForConfig(w.config)
	if err != nil {
		b.Fatal(err)
	}
	page, err := client.RESTClient().Get().AbsPath("/metrics").DoRaw(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return string(page)
}

// sumOf sums the samples of a metric on a page whose labels contain these texts.
func sumOf(b *testing.B, page, name string, labels ...string) float64 {
	b.Helper()
	sum, err := harness.SumSamples(page, name, labels...)
	if err != nil {
		b.Fatal(err)
	}
	return sum
}

// scraped are the histograms of admission that the API server keeps. The one of match
// conditions is not among them: a condition that holds is not observed.
var scraped = []string{
	"apiserver_admission_step_admission_duration_seconds",
	"apiserver_admission_controller_admission_duration_seconds",
	"apiserver_admission_webhook_admission_duration_seconds",
	"apiserver_mutating_admission_policy_check_duration_seconds",
	"apiserver_validating_admission_policy_check_duration_seconds",
}

// scrape reads the sums and counts of these histograms for updates. The key is the
// series without the labels that do not matter here.
func scrape(b *testing.B, w *world) map[string]float64 {
	b.Helper()
	found := map[string]float64{}
	for line := range strings.Lines(metricsPage(b, w)) {
		metric, rest, is := strings.Cut(line, "{")
		if !is || !wanted(metric) {
			continue
		}
		labels, value, is := strings.Cut(rest, "} ")
		if !is {
			b.Fatalf("no value in %q", line)
		}
		number, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			b.Fatal(err)
		}
		if key, counts := seriesKey(metric, labels); counts {
			found[key] += number
		}
	}
	return found
}

func wanted(metric string) bool {
	for _, histogram := range scraped {
		if metric == histogram+"_sum" || metric == histogram+"_count" {
			return true
		}
	}
	return false
}

// seriesKey leaves of the labels those that tell parts of a write apart.
func seriesKey(metric, labels string) (key string, counts bool) {
	short := strings.NewReplacer(
		"apiserver_admission_", "", "apiserver_", "", "_admission_duration_seconds", "", "_duration_seconds", "",
	).Replace(metric)
	var kept []string
	for label := range strings.SplitSeq(labels, ",") {
		name, value, _ := strings.Cut(label, "=")
		value = strings.Trim(value, `"`)
		switch name {
		case "operation":
			if value != "UPDATE" {
				return "", false
			}
		case "name", "type", "kind", "policy":
			kept = append(kept, value)
		}
	}
	return fmt.Sprintf("%s %s", short, strings.Join(kept, " ")), true
}
