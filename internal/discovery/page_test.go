// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// Somebody who has nothing but the guide has to come from an installation to a
// Service that proxies know.
func TestTheGuideSaysWhichServicesProxiesKnow(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "mesh.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	_, section, _ := strings.Cut(page, "## Which Services\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, name := range []string{ir.Managed, UpstreamsAnnotation, strconv.Itoa(maxUpstreams)} {
		if !strings.Contains(section, name) {
			t.Errorf("it does not speak of %s", name)
		}
	}
	for _, name := range []string{
		ir.HostsAnnotation, ir.ExportToAnnotation, inject.AnnotationLocalPorts, ir.RequestTimeoutAnnotation, ir.IdleTimeoutAnnotation, ir.ConnectTimeoutAnnotation, ir.RetriesAnnotation,
		string(ir.TrafficDistribution), string(ir.IPv6NotSplit), string(ir.InvalidSetting), string(NotExported),
	} {
		if !strings.Contains(page, name) {
			t.Errorf("the guide does not speak of %s", name)
		}
	}
	var rows []ir.Reason
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?) \\|").FindAllStringSubmatch(section, -1) {
		for _, reason := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(row[1], -1) {
			rows = append(rows, ir.Reason(reason[1]))
		}
	}
	slices.Sort(rows)
	reasons := []ir.Reason{
		ir.AddressTaken, ir.ExternalName, ir.Headless, ir.InternalTrafficPolicy, ir.NoHTTPPort, ir.NoPorts, ir.SessionAffinity, ir.TLSOnHTTPPort,
	}
	if diff := cmp.Diff(reasons, rows); diff != "" {
		t.Errorf("reasons to leave a Service alone (-code +guide):\n%s", diff)
	}
}
