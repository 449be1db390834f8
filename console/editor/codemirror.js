// The parts of CodeMirror that `console/assets/editor.js` uses. A part that isn't named here is not in the bundle.

export { autocompletion, closeCompletion, completionStatus } from '@codemirror/autocomplete';
export { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
export { json } from '@codemirror/lang-json';
export { yaml } from '@codemirror/lang-yaml';
export { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language';
export { lintGutter, lintKeymap, setDiagnostics } from '@codemirror/lint';
export { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search';
export { Compartment, EditorState, Prec } from '@codemirror/state';
export {
  drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, keymap, lineNumbers,
} from '@codemirror/view';
export { tags } from '@lezer/highlight';
