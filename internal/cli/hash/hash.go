// SPDX-License-Identifier: Apache-2.0

package hash

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/internal/cli/documents"
	"github.com/plumbline-dev/plumbline/internal/cli/guarded"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// app carries out the commands of this package with an invocation.
type app struct{ *invocation.Invocation }

type hashOptions struct {
	filenames []string
	algorithm string
	bare      bool
	output    string
}

// Command returns the command "hash".
func Command(inv *invocation.Invocation) *cobra.Command {
	a := &app{Invocation: inv}
	var o hashOptions
	cmd := &cobra.Command{
		Use:   "hash (-f FILE | TYPE/NAME)",
		Short: "Print the canonical hash of documents or of a live object",
		Long: `Print the canonical hash of each JSON or YAML document, one line each, or of a
live object beside the stamp that admission left on it.

With -f no cluster is needed. Input that begins with { is one strict JSON
document; other input is a stream of YAML documents, read as kubectl reads
them. Duplicate keys, data after the document, a document that is not an object
and input without any document are errors that name file and byte offset. Then
standard output stays empty.

The algorithms pl1 and pl2 cover all but apiVersion, kind, metadata and status;
ddem002 covers .spec. Kinds of Kubernetes itself are hashed by pl1, and all others
by pl2, which also covers null. With --bare the document is the spec itself: the
hash is that of an object with this spec and no kind. A manifest has the hash of
the live object only if it states every default.

A live object can carry a stamp older than itself: a write through /scale
changes the object and cannot change the stamp.`,
		Example: invocation.Examples(
			"# The hash of each document of a manifest", "%s hash -f deploy.yaml",
			"# Hash live objects, with kind, namespace and name", "kubectl get deploy web -o yaml | %s hash -f - -o wide",
			"# Compare with a system that uses DD-EM-002, from a bare spec", "%s hash -f spec.json --bare --algorithm ddem002",
			"# The live hash and the stamp of a Deployment", "%s hash deploy/web"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.hash(cmd, args, o)
		},
		ValidArgsFunction: guarded.CompleteObject(a.Invocation),
	}
	cmd.Flags().StringArrayVarP(&o.filenames, "filename", "f", nil, "File with JSON or YAML documents, or - for standard input. May be given several times.")
	cmd.Flags().StringVar(&o.algorithm, "algorithm", "", "Algorithm: pl1, pl2 or ddem002. The default is pl1 or pl2, by the kind.")
	cmd.Flags().BoolVar(&o.bare, "bare", false, "The document is the spec itself. Only with -f.")
	invocation.AddOutputFlag(cmd, &o.output, "json", "yaml", "wide")
	invocation.CompleteValues(cmd, "algorithm", string(canon.PL1), string(canon.PL2), string(canon.DDEM002))
	invocation.MustMarkFilename(cmd, "filename", "json", "yaml", "yml")
	return cmd
}

func (a *app) hash(cmd *cobra.Command, args []string, o hashOptions) error {
	algorithm, err := parseAlgorithm(cmd, o.algorithm)
	if err != nil {
		return err
	}
	if err := invocation.CheckOutput(cmd, o.output, "json", "yaml", "wide"); err != nil {
		return err
	}
	switch {
	case len(o.filenames) > 0 && len(args) > 0:
		return invocation.UsageErrorf(cmd, "-f and TYPE/NAME exclude each other")
	case len(o.filenames) > 0:
		return a.hashFiles(cmd, algorithm, o)
	case len(args) == 0:
		return invocation.UsageErrorf(cmd, "give documents with -f FILE (- for standard input), or a live object as TYPE/NAME")
	case o.bare:
		return invocation.UsageErrorf(cmd, "--bare needs -f")
	default:
		return a.hashLive(cmd, args, algorithm, o.output)
	}
}

func parseAlgorithm(cmd *cobra.Command, name string) (canon.Algorithm, error) {
	switch algorithm := canon.Algorithm(name); algorithm {
	case "", canon.PL1, canon.PL2, canon.DDEM002:
		return algorithm, nil
	default:
		return "", invocation.UsageErrorf(cmd, "unknown algorithm %q, want %s, %s or %s", name, canon.PL1, canon.PL2, canon.DDEM002)
	}
}

// hashed is one line of output.
type hashed struct {
	Hash       canon.Hash `json:"hash"`
	File       string     `json:"file"`
	Document   int        `json:"document"`
	APIVersion string     `json:"apiVersion,omitempty"`
	Kind       string     `json:"kind,omitempty"`
	Namespace  string     `json:"namespace,omitempty"`
	Name       string     `json:"name,omitempty"`
}

// hashFiles prints all lines or an error: half of the lines would pass for the whole.
func (a *app) hashFiles(cmd *cobra.Command, algorithm canon.Algorithm, o hashOptions) error {
	if first := slices.Index(o.filenames, "-"); first >= 0 && slices.Contains(o.filenames[first+1:], "-") {
		return invocation.UsageErrorf(cmd, "-f - can be given once")
	}
	var all []hashed
	for _, filename := range o.filenames {
		source, data, err := documents.ReadInput(filename, a.In)
		if err != nil {
			return err
		}
		if algorithm == canon.DDEM002 && documents.IsJSON(data) {
			data = canon.ReplaceLoneSurrogates(data)
		}
		docs, err := documents.Parse(source, data)
		if err != nil {
			return err
		}
		for i := range docs {
			h, err := hashDocument(&docs[i], algorithm, o.bare)
			if err != nil {
				return err
			}
			all = append(all, h)
			a.warnAbout(&docs[i], h, algorithm, o.bare)
		}
	}
	return a.printHashes(all, o.output)
}

func (a *app) printHashes(all []hashed, output string) error {
	if invocation.IsStructured(output) {
		return a.PrintReport(output, "HashList", map[string]any{"items": all})
	}
	var b strings.Builder
	for _, h := range all {
		b.WriteString(string(h.Hash))
		if output == "wide" {
			fmt.Fprintf(&b, "  %s/%s/%s", orDash(h.Kind), orDash(h.Namespace), orDash(h.Name))
		}
		b.WriteByte('\n')
	}
	return a.Print(b.String())
}

// orDash also keeps a hostile name from adding lines.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return invocation.Printable(text)
}

// warnAbout names the cases in which the one hash that was asked for is
// likely not the one that was meant, or better not shown around.
func (a *app) warnAbout(d *documents.Document, h hashed, algorithm canon.Algorithm, bare bool) {
	if bare {
		return
	}
	if algorithm == canon.DDEM002 && h.emptySpec(d) {
		a.Warn("%s: document %d has no .spec; ddem002 hashes it as an empty spec", d.Source, d.Number)
	}
	if h.Kind == "Secret" {
		a.Warn("%s: document %d is a Secret; short values can be guessed from its hash, so do not publish it", d.Source, d.Number)
	}
	if strings.HasSuffix(h.Kind, "List") {
		a.Warn("%s: document %d is a %s; it is hashed as one document, not item by item", d.Source, d.Number, invocation.Printable(h.Kind))
	}
}

func (h hashed) emptySpec(d *documents.Document) bool {
	parsed, err := canon.Parse(d.Body, canon.GVK{})
	if err != nil {
		return false
	}
	defer parsed.Release()
	kind := parsed.Root().Get("spec").Kind()
	return kind == canon.Absent || kind == canon.Null
}

func hashDocument(d *documents.Document, algorithm canon.Algorithm, bare bool) (hashed, error) {
	h := hashed{File: d.Source, Document: d.Number}
	parsed, err := canon.Parse(d.Body, canon.GVK{})
	if err != nil {
		return h, d.Fault(err, 0)
	}
	defer parsed.Release()
	root := parsed.Root()
	if !bare {
		h.APIVersion, h.Kind = text(root.Get("apiVersion")), text(root.Get("kind"))
		h.Namespace, h.Name = text(root.Get("metadata").Get("namespace")), text(root.Get("metadata").Get("name"))
	}
	if algorithm == canon.DDEM002 {
		h.Hash, err = hashSpec(d, root, bare)
	} else {
		h.Hash, err = hashBody(d, canon.ParseGVK(h.APIVersion, h.Kind), bare)
	}
	if by := h.Hash.Algorithm(); err == nil && algorithm != "" && by != algorithm {
		return h, d.Fault(fmt.Errorf("kind %q is hashed by %s, not by %s", cmp.Or(h.Kind, "none"), by, algorithm), 0)
	}
	return h, err
}

func text(v canon.Value) string {
	if v.Kind() != canon.String {
		return ""
	}
	return v.Text()
}

const bareSpecPrefix = `{"spec":`

// hashBody wraps a bare spec into an object, so that one spec has one hash
// whether its document is bare or not.
func hashBody(d *documents.Document, gvk canon.GVK, bare bool) (canon.Hash, error) {
	body, shift := d.Body, 0
	if bare {
		body = append(append([]byte(bareSpecPrefix), d.Body...), '}')
		gvk, shift = canon.GVK{}, len(bareSpecPrefix)
	}
	h, err := canon.HashBody(body, gvk)
	if err != nil {
		return "", d.Fault(err, shift)
	}
	return h, nil
}

func hashSpec(d *documents.Document, root canon.Value, bare bool) (canon.Hash, error) {
	spec := root
	if !bare {
		spec = root.Get("spec")
	}
	switch spec.Kind() {
	case canon.Absent, canon.Null:
		return canon.HashSpec(nil)
	case canon.Map:
	default:
		return "", &documents.InputError{Source: d.Source, Offset: d.Start, Problem: ".spec is not an object, and ddem002 hashes .spec alone"}
	}
	h, err := canon.HashSpec(spec.Raw())
	if err != nil {
		start := cap(d.Body) - cap(spec.Raw()) // a slice of the body, so this is where it begins
		at, problem := float64Overflow(spec.Raw())
		return "", &documents.InputError{Source: d.Source, Offset: d.Locate(start + at), Problem: cmp.Or(problem, err.Error())}
	}
	return h, nil
}

// float64Overflow finds the first number that ddem002, which knows float64
// alone, cannot hold. It is the only thing a checked document can fail on.
func float64Overflow(spec []byte) (offset int, problem string) {
	decoder := json.NewDecoder(bytes.NewReader(spec))
	decoder.UseNumber()
	for {
		token, err := decoder.Token()
		if err != nil {
			return 0, ""
		}
		if number, ok := token.(json.Number); ok {
			if _, err := number.Float64(); err != nil {
				return int(decoder.InputOffset()) - len(number), fmt.Sprintf("the number %s is beyond float64, which ddem002 uses", number)
			}
		}
	}
}

// liveHash is the report of "hash TYPE/NAME".
type liveHash struct {
	Object string     `json:"object"`
	Live   canon.Hash `json:"live"`
	// Stamp is the annotation as it stands, and Verdict compares it with the live hash.
	Stamp   string `json:"stamp,omitempty"`
	Verdict string `json:"verdict"`
}

func (a *app) hashLive(cmd *cobra.Command, args []string, algorithm canon.Algorithm, output string) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	target, err := guarded.ResolveOne(c, cmd, args)
	if err != nil {
		return err
	}
	answer, err := readLiveHash(cmd.Context(), c, target, algorithm)
	if err != nil {
		return err
	}
	if invocation.IsStructured(output) {
		return a.PrintReport(output, "LiveHash", answer)
	}
	stamp := answer.Stamp
	if stamp == "" {
		stamp = "<none>"
	}
	return a.PrintTable(invocation.TableOptions{Wide: output == "wide"},
		[]invocation.Column{{Name: "Which"}, {Name: "Hash"}, {Name: "Meaning"}},
		[][]any{
			{"live", string(answer.Live), target.String() + " as it is now"},
			{"stamp", stamp, answer.Verdict},
		})
}

func readLiveHash(ctx context.Context, c *invocation.Cluster, target guarded.Target, algorithm canon.Algorithm) (liveHash, error) {
	answer := liveHash{Object: target.String()}
	body, err := c.Live(ctx, target.Mapping, target.Namespace, target.Name)
	if err != nil {
		return answer, err
	}
	live, err := canon.HashBody(body, target.GVK())
	if err != nil {
		return answer, fmt.Errorf("hashing %s: %w", target, err)
	}
	var object unstructured.Unstructured
	if err := json.Unmarshal(body, &object.Object); err != nil {
		return answer, fmt.Errorf("reading %s: %w", target, err)
	}
	answer.Stamp = object.GetAnnotations()[v1alpha1.AnnotationSpecHash]
	answer.Verdict = judgeStamp(answer.Stamp, live)
	answer.Live = live
	if algorithm != "" {
		d := documents.Document{Source: target.String(), Body: body, Locate: func(offset int) int { return offset }}
		h, err := hashDocument(&d, algorithm, false)
		if err != nil {
			return answer, err
		}
		answer.Live = h.Hash
	}
	return answer, nil
}

// judgeStamp compares a stamp with the live hash.
func judgeStamp(stamp string, live canon.Hash) string {
	switch {
	case stamp == "":
		return "no stamp: not a guarded root object, or never admitted under guard"
	case stamp == string(live):
		return "as admission left it: equals the live hash"
	}
	if canon.Hash(stamp).Algorithm() != live.Algorithm() {
		return fmt.Sprintf("not a %s hash: made by another version, or forged through /status", live.Algorithm())
	}
	return "differs from the object: a later write could not restamp it (through /scale), or the webhook was away"
}
