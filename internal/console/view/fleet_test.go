// SPDX-License-Identifier: Apache-2.0

package view

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// largeFleet has objects in namespaces, of which one in 50 has drifted, and plans under way.
func largeFleet(objects, namespaces, plans int) *Fleet {
	in := &Fleet{Namespaces: map[string]labels.Set{}, Now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	for i := range objects {
		b := v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("team-%d", i%namespaces), Name: fmt.Sprintf("deployments.apps.web-%d", i)}}
		b.Spec.Target = v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: fmt.Sprintf("web-%d", i)}
		b.Status.State = v1alpha1.StateInSync
		if i%50 == 0 {
			b.Status.State, b.Status.Severity = v1alpha1.StateDrifted, &v1alpha1.Severity{Level: v1alpha1.SeverityHigh, Score: 71}
		}
		in.Baselines = append(in.Baselines, b)
	}
	for i := range plans {
		p := v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("team-%d", i%namespaces), Name: fmt.Sprintf("production-%08x", i)}}
		p.Status.Phase = v1alpha1.PlanRunning
		in.Plans = append(in.Plans, p)
	}
	return in
}

// compressedSize is how many bytes a body has as the server in the cluster sends it.
func compressedSize(t *testing.T, body []byte) int {
	t.Helper()
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err == nil {
		_, err = w.Write(body)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Len()
}

// firstLoad is how many bytes the first page may have with all that it loads.
const firstLoad = 200_000

// checkFirstLoad demands that a page is small with all that it loads, and returns its HTML.
func checkFirstLoad(t *testing.T, name string, page *Page) string {
	t.Helper()
	size := 0
	err := fs.WalkDir(Assets, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(Assets, path)
		size += len(raw)
		return err
	})
	if err != nil || size == 0 {
		t.Fatalf("the assets have %d bytes: %v", size, err)
	}
	body, _, err := Render(page)
	if err != nil {
		t.Fatal(err)
	}
	if size += len(body); size > firstLoad {
		t.Errorf("%s: the first load has %d bytes", name, size)
	}
	t.Logf("%s: the page has %d bytes, and %d compressed", name, len(body), compressedSize(t, body))
	return string(body)
}

func TestTheFirstLoadOfALargeFleetIsSmall(t *testing.T) {
	for name, in := range map[string]*Fleet{
		"10,000 objects in 200 namespaces, and 1,000 plans": largeFleet(10_000, 200, 1000),
		"10,000 objects in one namespace":                   largeFleet(10_000, 1, 0),
		"10,000 objects in as many namespaces":              largeFleet(10_000, 10_000, 0),
		"10,000 objects that have drifted": func() *Fleet {
			in := largeFleet(10_000, 200, 0)
			for i := range in.Baselines {
				in.Baselines[i].Status.State = v1alpha1.StateDrifted
			}
			return in
		}(),
	} {
		page := FleetOf(in)
		checkFirstLoad(t, name, &page)
	}
}

// Each object is counted in its namespace, whether it has a cell or not, and none that is left out is worse than
// one that has a cell.
func TestALargeFleetShowsTheWorstAndCountsTheRest(t *testing.T) {
	in := largeFleet(10_000, 500, 150)
	page := FleetOf(in)
	rows, cells, counted, more := 0, 0, 0, 0
	for _, s := range page.Sections {
		for _, row := range s.Grid {
			rows++
			cells += len(row.Cells)
			var n, left int
			_, err := fmt.Sscanf(row.Summary, "%d guarded", &n)
			if err != nil {
				t.Fatalf("%q: %v", row.Summary, err)
			}
			counted += n
			if row.More.Text != "" {
				if _, err := fmt.Sscanf(row.More.Text, "%d more", &left); err != nil || row.More.Path != "/?namespace="+row.Name {
					t.Fatalf("%+v: %v", row.More, err)
				}
			}
			more += left
			if len(row.Cells)+left != n {
				t.Errorf("%s: %d cells and %d more of %d objects", row.Name, len(row.Cells), left, n)
			}
		}
	}
	if rows != maxGridRows || cells == 0 || cells > maxCells || counted != cells+more || counted != maxGridRows*20 {
		t.Errorf("%d rows with %d cells and %d more of %d objects", rows, cells, more, counted)
	}
	// Namespaces whose number is no multiple of 50 have no drift: all 200 drifts of the fleet are shown first.
	body, _, err := Render(&page)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(body), `<a class="state drifted"`); n != 200 {
		t.Errorf("%d drifted objects have a cell, want 200", n)
	}
	for _, words := range []string{"200 namespaces left out", `<a href="/drift?state=Drifted">Drifted: 200</a>`, "50 more rows are left out"} {
		if !strings.Contains(string(body), words) {
			t.Errorf("%q is not in the page", words)
		}
	}
}

// BenchmarkFleet makes the page of 10,000 objects in 200 namespaces.
func BenchmarkFleet(b *testing.B) {
	in, size := largeFleet(10_000, 200, 0), 0
	for b.Loop() {
		page := FleetOf(in)
		body, _, err := Render(&page)
		if err != nil {
			b.Fatal(err)
		}
		size = len(body)
	}
	b.ReportMetric(float64(size), "bytes/page")
}
