// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

var (
	action    = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	valueText = regexp.MustCompile(`(?m)^\s*# -- (.*)$`)
	// policyText is a message of a policy, or a literal in an expression that makes one.
	policyText = regexp.MustCompile(`(?m)^( *(?:- )?)message(Expression)?: *(.*)$`)
	celLiteral = regexp.MustCompile(`'([^']*)'|"([^"]*)"`)
)

// splitAlerts returns the sentences of the summaries and descriptions of alerts.
func splitAlerts(file, text string) (sentences []sentence, err error) {
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert       string            `json:"alert"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.Unmarshal([]byte(text), &rules); err != nil {
		return nil, fmt.Errorf("reading alerts: %w", err)
	}
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			for _, part := range []string{"summary", "description"} {
				sentences = append(sentences, splitSentences(file+" "+rule.Alert, action.ReplaceAllString(rule.Annotations[part], "X"))...)
			}
		}
	}
	return sentences, nil
}

// splitValues returns the sentences of the comments that describe values.
func splitValues(file, text string) (sentences []sentence, err error) {
	for _, at := range valueText.FindAllStringSubmatchIndex(text, -1) {
		sentences = append(sentences, splitSentences(placeOf(file, text, at[2]), text[at[2]:at[3]])...)
	}
	return sentences, nil
}

// splitTemplate returns the sentences of a text with actions of Helm.
func splitTemplate(file, text string) (sentences []sentence, err error) {
	return splitMarkdown(file, action.ReplaceAllStringFunc(text, func(found string) string {
		return "X" + strings.Repeat("\n", strings.Count(found, "\n"))
	})), nil
}

// splitPolicy returns the sentences of the messages in a template of an admission policy.
func splitPolicy(file, text string) (sentences []sentence) {
	for _, at := range policyText.FindAllStringSubmatchIndex(text, -1) {
		place, message, indent := placeOf(file, text, at[0]), text[at[6]:at[7]], at[3]-at[2]
		if strings.HasPrefix(message, ">") || strings.HasPrefix(message, "|") {
			message = foldBlock(text[at[1]:], indent)
		}
		if at[4] < 0 {
			sentences = append(sentences, splitSentences(place, action.ReplaceAllString(message, "X"))...)
			continue
		}
		for _, literal := range celLiteral.FindAllStringSubmatch(message, -1) {
			if text := literal[1] + literal[2]; !protocol.MatchString(text) {
				sentences = append(sentences, splitSentences(place, action.ReplaceAllString(text, "X"))...)
			}
		}
	}
	return sentences
}

// foldBlock joins the lines at the beginning of a text that are indented by more than some spaces.
func foldBlock(text string, indent int) string {
	var block []string
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\n"), "\n") {
		if len(line)-len(strings.TrimLeft(line, " ")) <= indent {
			break
		}
		block = append(block, strings.TrimSpace(line))
	}
	return strings.Join(block, " ")
}

func placeOf(file, text string, at int) string {
	return fmt.Sprintf("%s:%d", file, 1+strings.Count(text[:at], "\n"))
}
