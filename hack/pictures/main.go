// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("want draw DIRECTORY, or record FILE")
	}
	switch args[0] {
	case "draw":
		return drawPictures(args[1])
	case "record":
		return recordToFile(args[1], in, out)
	default:
		return fmt.Errorf("%s is no command; want draw or record", args[0])
	}
}

// drawPictures writes the pictures into a directory that has the transcript of the demo.
func drawPictures(directory string) error {
	transcript, err := os.ReadFile(filepath.Join(directory, "demo.txt"))
	if err != nil {
		return fmt.Errorf("reading the transcript of the demo: %w", err)
	}
	lines, err := parseTranscript(string(transcript))
	if err != nil {
		return fmt.Errorf("reading the transcript of the demo: %w", err)
	}
	for name, picture := range map[string]string{"flow.svg": drawFlow(flow), "demo.svg": drawRecording(lines)} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(picture), 0o644); err != nil { //nolint:gosec // a page of the documentation
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}

// recordToFile copies the output of the demo, and writes its scenes with their times to a file.
func recordToFile(path string, in io.Reader, out io.Writer) error {
	begun := time.Now()
	transcript, err := recordScenes(in, out, func() time.Duration { return time.Since(begun) })
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(transcript), 0o644); err != nil { //nolint:gosec // a page of the documentation
		return fmt.Errorf("writing the transcript: %w", err)
	}
	return nil
}
