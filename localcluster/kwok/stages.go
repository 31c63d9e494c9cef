// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	nodes "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	pods "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/yaml"
)

// fastStages are kwok's own, by the kind of object that they are for: a node is ready at once and for good, a pod at
// once, that of a Job then succeeds, and one that is to be deleted is gone. None is played on what rests.
func fastStages() (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	stages := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, text := range []string{nodes.DefaultNodeInit, pods.DefaultPodReady, pods.DefaultPodComplete, pods.DefaultPodDelete} {
		var stage v1alpha1.Stage
		if err := yaml.UnmarshalStrict([]byte(text), &stage); err != nil {
			return nil, fmt.Errorf("read a stage: %w", err)
		}
		converted, err := internalversion.ConvertToInternalStage(&stage)
		if err != nil {
			return nil, fmt.Errorf("read stage %s: %w", stage.Name, err)
		}
		kind := converted.Spec.ResourceRef
		stages[kind] = append(stages[kind], converted)
	}
	return stages, nil
}
