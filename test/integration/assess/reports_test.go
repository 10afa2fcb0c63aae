// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/pkg/report"
	"github.com/plumbline-dev/plumbline/test/harness/child"
)

// withReports has the assessor write reports in a format, without delay.
func withReports(format report.Format) option {
	return func(s *assessor.Setup) {
		s.Reports, s.ReportInterval = []report.Format{format}, 50*time.Millisecond
	}
}

// reportSchema reads the definition of the kind Report that its own module has.
func (w *world) reportSchema() *apiextensions.CustomResourceDefinition {
	w.t.Helper()
	dir, err := child.Bind(exec.CommandContext(w.Ctx(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/openreports/reports-api")).Output()
	w.Must(err)
	raw, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "config", "crd", "openreports.io_reports.yaml"))
	w.Must(err)
	crd := &apiextensions.CustomResourceDefinition{}
	w.Must(yaml.UnmarshalStrict(raw, crd))
	return crd
}

// report reads the report of the namespace by the types of its own module; nil without one.
func (w *world) report(format report.Format) (*openreports.Report, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(format.Kind())
	switch err := admin.Get(w.Ctx(), client.ObjectKey{Namespace: w.namespace, Name: "plumbline"}, object); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	read := &openreports.Report{}
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.DisallowUnknownFields()
	return read, decoder.Decode(read)
}

// untilServed waits until the API server serves the kind of a format.
func (w *world) untilServed(format report.Format) {
	w.t.Helper()
	w.Eventually(fmt.Sprintf("the kind of %s is served", format), func() error {
		_, err := w.report(format)
		return err
	})
}

// untilReported waits until the report of the namespace has a summary, and returns it.
func (w *world) untilReported(format report.Format, want openreports.ReportSummary) (read *openreports.Report) {
	w.t.Helper()
	w.Eventually(fmt.Sprintf("the report says %+v", want), func() (err error) {
		read, err = w.report(format)
		if err == nil && (read == nil || read.Summary != want) {
			err = fmt.Errorf("the report is %+v", read)
		}
		return err
	})
	return read
}

func TestAReportNamesDriftWithItsWriter(t *testing.T) {
	w := newWorld(t)
	real := w.reportSchema()
	w.InstallKind("openreports.io", "Report", "reports", apiextensions.NamespaceScoped, func(crd *apiextensions.CustomResourceDefinition) {
		crd.Spec = real.Spec
	})
	w.untilServed(report.OpenReports)
	start(t, withReports(report.OpenReports))
	g := w.UnderGuard()
	w.Deploy(ci, "web")
	w.Deploy(ci, "cart")
	w.UntilIs("web", "InSync")
	w.untilReported(report.OpenReports, openreports.ReportSummary{Pass: 2})
	w.SetImage(mallory, "web", "registry.example/evil:1")
	read := w.untilReported(report.OpenReports, openreports.ReportSummary{Pass: 1, Fail: 1})
	worst := read.Results[0]
	if worst.Result != report.Fail || worst.Subjects[0].Name != "web" || worst.Policy != "SpecGuard/"+g.Name ||
		!strings.Contains(worst.Description, imagePath+" by mallory (Untrusted, WriterStamp)") || strings.Contains(fmt.Sprint(read), "evil") {
		t.Errorf("the worst result is %+v", worst)
	}
	if len(read.OwnerReferences) != 1 || read.OwnerReferences[0].UID != g.UID {
		t.Errorf("the owners are %+v", read.OwnerReferences)
	}
	w.SetImage(ci, "web", "registry.example/shop:2")
	w.untilReported(report.OpenReports, openreports.ReportSummary{Pass: 2})
	version := read.ResourceVersion
	w.Must(admin.Delete(w.Ctx(), g))
	w.Eventually("the report of a namespace without a guard is gone", func() error {
		if read, err := w.report(report.OpenReports); err != nil || read != nil {
			return fmt.Errorf("it is there, first seen at %s: %+v %w", version, read, err)
		}
		return nil
	})
}

// TestAPolicyReportHasItsSourceInEachResult uses a kind that keeps all fields: the
// schema of PolicyReport has those of Report but for the source of the whole.
func TestAPolicyReportHasItsSourceInEachResult(t *testing.T) {
	w := newWorld(t)
	w.InstallKind("wgpolicyk8s.io", "PolicyReport", "policyreports", apiextensions.NamespaceScoped, func(crd *apiextensions.CustomResourceDefinition) {
		crd.Spec.Versions[0].Name = "v1alpha2"
	})
	w.untilServed(report.PolicyReport)
	start(t, withReports(report.PolicyReport))
	w.UnderGuard()
	w.Deploy(ci, "web")
	read := w.untilReported(report.PolicyReport, openreports.ReportSummary{Pass: 1})
	if read.Source != "" || read.Results[0].Source != report.Source {
		t.Errorf("the source is %q and %q", read.Source, read.Results[0].Source)
	}
}
