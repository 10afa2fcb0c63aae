// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// mostBytes bounds the recording, which each reader of the README loads.
const mostBytes = 150 << 10

func TestPicturesAreWellFormed(t *testing.T) {
	for name, picture := range map[string]string{
		"the flow":                       drawFlow(flow),
		"a recording with hostile texts": drawRecording([]line{{0, "1. <script>&\"'"}, {time.Second, strings.Repeat("ä", 300)}}),
	} {
		t.Run(name, func(t *testing.T) {
			decoder := xml.NewDecoder(strings.NewReader(picture))
			for {
				if _, err := decoder.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
			for _, part := range []string{"<title", "<desc", "prefers-color-scheme:dark"} {
				if !strings.Contains(picture, part) {
					t.Errorf("the picture has no %s", part)
				}
			}
			if strings.Contains(picture, "<script>") {
				t.Error("a text became an element")
			}
		})
	}
}

func TestEachArrowJoinsTwoBoxesAndEachTextFits(t *testing.T) {
	names := map[string]bool{}
	for _, b := range flow.boxes {
		names[b.name] = true
		for _, text := range b.lines {
			if widthOf(text)*7 > boxWidth { // 13 px of a sans-serif font
				t.Errorf("%q is wider than its box", text)
			}
		}
	}
	for _, a := range flow.arrows {
		if !names[a.from] || !names[a.to] {
			t.Errorf("an arrow leads from %q to %q", a.from, a.to)
		}
		if widthOf(a.label)*7 > gapWidth {
			t.Errorf("the label %q is wider than the gap", a.label)
		}
	}
}

func TestARecordingOfALongDemoIsSmall(t *testing.T) {
	var lines []line
	for i := range 600 {
		lines = append(lines, line{time.Duration(i) * time.Second, strings.Repeat("plumbline ", 10)})
	}
	if n := len(drawRecording(lines)); n > mostBytes {
		t.Errorf("600 lines are %d bytes, want at most %d", n, mostBytes)
	}
}

func TestScenesAreRecordedWithoutWhatIsAroundThem(t *testing.T) {
	output := "[  0.1s] building\n\n" + rule + "\n1. CI deploys\n" + rule + "\n$ kubectl get pods\n\n" + rule + "\n2. A human\n" + rule + "\nServing on http://127.0.0.1:1/?key=abc\nuntil 2026-01-02T03:04:05Z\n\n" +
		rule + "\n3. What to try next\n" + rule + "\n  export PATH=/a/place\n"
	clock := time.Duration(0)
	var copied strings.Builder
	transcript, err := recordScenes(strings.NewReader(output), &copied, func() time.Duration { clock += 10 * time.Millisecond; return clock })
	if err != nil {
		t.Fatal(err)
	}
	if copied.String() != output {
		t.Errorf("the copy of the output is\n%s", copied.String())
	}
	lines, err := parseTranscript(transcript)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, l := range lines {
		texts = append(texts, l.text)
	}
	if diff := cmp.Diff([]string{"1. CI deploys", "$ kubectl get pods", "", "2. A human", "Serving on http://127.0.0.1:1/?key=…", "until 03:04:05Z"}, texts); diff != "" {
		t.Errorf("recorded lines (-want +got):\n%s", diff)
	}
}

func TestABadTranscriptIsRefused(t *testing.T) {
	for name, transcript := range map[string]string{
		"an empty one":         "",
		"a line without a tab": "12 text\n",
		"a line without time":  "\ttext\n",
		"time that goes back":  "12\ta\n11\tb\n",
	} {
		t.Run(name, func(t *testing.T) {
			if lines, err := parseTranscript(transcript); err == nil {
				t.Errorf("it was read as %v", lines)
			}
		})
	}
	if _, err := recordScenes(strings.NewReader("[  0.1s] building\n"), io.Discard, func() time.Duration { return 0 }); err == nil {
		t.Error("output without a scene was recorded")
	}
}

func TestPausesAreShortenedAndLongLinesWrapped(t *testing.T) {
	long := strings.Repeat("x", columns) + "y"
	got := wrapLines(shortenPauses([]line{{0, "a"}, {time.Minute, long}, {time.Minute + time.Second, "b"}}))
	want := []line{{0, "a"}, {longestPause, long[:columns]}, {longestPause, "y"}, {longestPause + time.Second, "b"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(line{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	screens, length := listScreens(got)
	if diff := cmp.Diff([]screen{{0, 1}, {longestPause, 3}, {longestPause + time.Second, 4}}, screens, cmp.AllowUnexported(screen{})); diff != "" {
		t.Errorf("screens (-want +got):\n%s", diff)
	}
	if want := longestPause + time.Second + lastPause; length != want {
		t.Errorf("the recording lasts %s, want %s", length, want)
	}
}
