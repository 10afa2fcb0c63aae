// SPDX-License-Identifier: Apache-2.0

// Command prose measures the sentences that people read, and fails where they break the
// rule of words: a sentence names its actor and uses the field's noun. It reads the pages,
// the alerts, the comments of values.yaml, NOTES.txt, the messages of the admission
// policies, and of the Go code the strings, the CEL messages and the comments of API fields.
//
//	go run ./hack/prose            # what lint runs: the areas that exceed a budget, with their sentences
//	go run ./hack/prose -table     # the figures of each area
//	go run ./hack/prose -table docs/guides/*.md # the figures of other files, of any project
//
// A clause with what or who hides its noun, and a sentence with nobody or nothing hides its
// actor. The budgets per 1,000 words of prose are those of projects whose pages read well.
// Words that the glossary retires, a sentence that begins with Who or What, and pronouns of
// persons are errors wherever they are. Code, links and the values of templates are no prose.
//
// The comments of commands and internal packages are counted by folder. A folder keeps the same budgets, or has a line in
// hack/prose/ratchet.txt with bounds of its own, which only fall.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
)

func main() {
	err := run(os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "prose: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("prose", flag.ContinueOnError)
	root := flags.String("root", ".", "the repository")
	table := flags.Bool("table", false, "print the figures of each area, and of the files that are named")
	if err := flags.Parse(args); err != nil {
		return err
	}
	page, err := os.ReadFile(filepath.Join(*root, glossaryPage))
	if err != nil {
		return fmt.Errorf("reading the glossary: %w", err)
	}
	retired, err := parseRetired(string(page))
	if err != nil {
		return fmt.Errorf("%s: %w", glossaryPage, err)
	}
	areas, err := readChosen(*root, flags.Args())
	if err != nil {
		return err
	}
	if len(flags.Args()) > 0 {
		return printTable(out, areas, retired)
	}
	comments, err := readComments(*root)
	if err != nil {
		return err
	}
	if *table {
		return errors.Join(printTable(out, areas, retired), printTable(out, nameComments(comments), retired))
	}
	return errors.Join(check(out, areas, retired), checkComments(out, *root, comments))
}

// nameComments returns areas of comments with names that tell them apart from areas of strings.
func nameComments(comments []area) []area {
	named := slices.Clone(comments)
	for i := range named {
		named[i].name += ", comments"
	}
	return named
}

// checkComments prints the sentences of each folder with comments above the bounds, and the needless lines of the ratchet.
func checkComments(out io.Writer, root string, comments []area) error {
	ratchet, err := readRatchet(root)
	if err != nil {
		return err
	}
	findings := judgeRatchet(comments, ratchet)
	for _, a := range comments {
		findings = append(findings, judgeComments(a, ratchet)...)
	}
	for _, finding := range findings {
		fmt.Fprintln(out, finding)
	}
	if len(findings) > 0 {
		return fmt.Errorf("%d sentences of comments are too many", len(findings))
	}
	return nil
}

// readChosen returns the areas of the named pages, and those of the repository without names.
func readChosen(root string, files []string) ([]area, error) {
	if len(files) > 0 {
		return readPages("", files)
	}
	return readAreas(root)
}

// check prints the sentences of each area that exceeds a budget.
func check(out io.Writer, areas []area, retired retiredWords) error {
	failed := 0
	for _, a := range areas {
		findings := judge(a, retired)
		for _, finding := range findings {
			fmt.Fprintln(out, finding)
		}
		if len(findings) > 0 {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d areas exceed a budget of words", failed)
	}
	return nil
}

func printTable(out io.Writer, areas []area, retired retiredWords) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "words\twhat/who per 1,000\tnobody per 1,000\theadless\tpersons\tretired\tover 25 words\t area\t")
	var all figures
	for _, a := range areas {
		f := measure(a.sentences, retired)
		all = all.add(f)
		printRow(w, f, a.name)
	}
	printRow(w, all, "all")
	return w.Flush()
}

func printRow(w io.Writer, f figures, name string) {
	fmt.Fprintf(w, "%d\t%.1f\t%.1f\t%d\t%d\t%d\t%d\t %s\t\n", f.words, f.perThousand(f.who), f.perThousand(f.nobody), f.headless, f.persons, f.retired, f.long, name)
}
