// SPDX-License-Identifier: Apache-2.0

package view

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"html/template"
	"strconv"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions/wording"
)

// Page is what a page shows.
type Page struct {
	Title string
	// Entry is the path of the entry of the navigation that the page belongs to.
	Entry string
	// Time is when the values were read, by the clock of the API server.
	Time time.Time
	// Still says that the script does not read the page anew.
	Still bool
	// Sent says which request of the caller was sent.
	Sent    string
	Filters []Filter
	// Paused has the script begin with updates paused: each read of the page takes many requests.
	Paused bool
	// Unread are sentences about what could not be read. The page shows nothing in its place.
	Unread   []string
	Sections []Section
	// HasLogout says that the server has sessions of users: the page has a button that ends one.
	HasLogout bool
}

// Filter narrows a page down. The value is in the address.
type Filter struct {
	Name, Label, Value string
	// Options are the values to choose from; none for free text.
	Options []string
}

// Section is a part of a page. Empty fields are left out.
type Section struct {
	// ID is the fragment that leads to the section.
	ID, Title string
	Facts     []wording.Field
	Lines     []string
	Links     []Cell
	Log       []string
	Grid      []GridRow
	Charts    []Chart
	Table     *Table
	Forms     []Form
}

// Table has a header above each column, and the header of each row in the first cell.
type Table struct {
	Caption string
	Columns []string
	Rows    [][]Cell
	// Empty is what a table without rows says.
	Empty string
	// More says how many rows are left out; empty if none are.
	More string
}

// Cell is a value in a table.
type Cell struct {
	Text string
	// Path is where the text leads.
	Path string
	// Mark is a shape before the text, and State the class that colors it.
	Mark  string
	State string
	// UTC is the time that the text tells relative to now.
	UTC   string
	Lines []string
}

// GridRow has the objects of a namespace.
type GridRow struct {
	Name, Path, Summary string
	Cells               []GridCell
	// More leads to the objects that have no cell; empty if all have one.
	More Cell
}

// GridCell is an object, whose label says all that shape and color say.
type GridCell struct{ Path, Mark, State, Label string }

// entry is a line of the navigation.
type entry struct {
	Path, Label string
	Current     bool
}

// The paths of the pages.
const (
	FleetPath       = "/"
	DriftPath       = "/drift"
	ObjectPath      = "/objects/"
	PlansPath       = "/plans"
	PoliciesPath    = "/policies"
	NewPolicyPath   = "/new-policy"
	ReleasesPath    = "/releases"
	AssessmentsPath = "/assessments"
	EvidencePath    = "/evidence"
	ProxiesPath     = "/proxies"
	LedgersPath     = "/ledgers"
	WhoamiPath      = "/whoami"
	AssetsPath      = "/assets/"
)

// packetsPath is before the id of a plan in the REST API, which sends the packet of its evidence as a file.
const packetsPath = "/api/v1/remediation/history"

func navigation(current string) []entry {
	entries := []entry{
		{Path: FleetPath, Label: "Fleet"}, {Path: DriftPath, Label: "Drift"}, {Path: PlansPath, Label: "Plans"}, {Path: PoliciesPath, Label: "Policies"},
		{Path: ReleasesPath, Label: "Releases"}, {Path: AssessmentsPath, Label: "Assessments"},
		{Path: EvidencePath, Label: "Evidence"}, {Path: ProxiesPath, Label: "Proxies"}, {Path: WhoamiPath, Label: "Whoami"},
	}
	for i := range entries {
		entries[i].Current = entries[i].Path == current
	}
	return entries
}

// Assets are the files that pages load.
//
//go:embed assets
var Assets embed.FS

//go:embed templates
var files embed.FS

var templates = template.Must(template.ParseFS(files, "templates/*.html"))

// Render returns the HTML of a page, and the strong ETag of all of the page but the time of its reads.
func Render(p *Page) (body []byte, tag string, err error) {
	var content, whole bytes.Buffer
	if err := templates.ExecuteTemplate(&content, "content.html", p); err != nil {
		return nil, "", fmt.Errorf("rendering the content of the page %q: %w", p.Title, err)
	}
	read := wording.FormatTimestamp(metav1.NewTime(p.Time))
	err = templates.ExecuteTemplate(&whole, "page.html", struct {
		Title      string
		Navigation []entry
		Read       Cell
		Still      bool
		Paused     bool
		HasLogout  bool
		Content    template.HTML
	}{p.Title, navigation(p.Entry), Cell{Text: read, UTC: read}, p.Still, p.Paused, p.HasLogout, template.HTML(content.String())})
	if err != nil {
		return nil, "", fmt.Errorf("rendering the page %q: %w", p.Title, err)
	}
	return bytes.Map(printable, whole.Bytes()), strconv.Quote(fmt.Sprintf("%x", sha256.Sum256(content.Bytes()))), nil
}

// printable replaces a character that hides or reorders text, or that a terminal obeys.
func printable(r rune) rune {
	if r == '\n' || unicode.IsPrint(r) {
		return r
	}
	return unicode.ReplacementChar
}

// Refused is the page in the place of one that could not be made.
func Refused(title, entry, why string, filters []Filter, now time.Time) Page {
	return Page{Title: title, Entry: entry, Time: now, Unread: []string{why}, Filters: filters}
}

// NamespaceFilter is the filter of a page whose values are of one namespace.
func NamespaceFilter(value string) []Filter { return []Filter{namespaceFilter(value)} }
