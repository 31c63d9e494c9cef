// SPDX-License-Identifier: Apache-2.0

// Package intent answers one question about an object of the cluster: does it
// still say what we want it to say? An intent is an apply configuration, or the
// map of fields that one stands for: exactly the fields that we own and nothing
// else. Everything here is pure.
package intent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

// Fields returns the fields that an apply configuration sets, as JSON would
// carry them. The configuration isn't changed, and shares nothing with the result.
func Fields(configuration any) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(configuration)
	if err != nil {
		return nil, fmt.Errorf("read the fields of %T: %w", configuration, err)
	}
	return fields, nil
}

// Hash returns a hash of fields, 16 hexadecimal digits long, that changes
// whenever one of them does, with one exception: the data of a Secret counts by
// its keys alone, so that nothing about its values can be learned from the hash.
func Hash(fields map[string]any) (string, error) {
	if fields["kind"] == "Secret" {
		fields = runtime.DeepCopyJSON(fields)
		if data, isMap := fields["data"].(map[string]any); isMap {
			for key := range data {
				data[key] = ""
			}
		}
	}
	// Maps are marshalled in the order of their keys.
	encoded, err := json.Marshal(fields)
	if err != nil {
		return "", fmt.Errorf("hash an intent: %w", err)
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:8]), nil
}
