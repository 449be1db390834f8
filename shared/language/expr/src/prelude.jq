# What jq 1.6 defines in jq, or what jaq does otherwise than jq 1.6.

def gmtime: _instant | _gmtime;
def strftime($format): _time_format($format) as $spelled | _instant | _strftime($spelled);
def strptime($format): . as $text | try _strptime($format) catch (. as $error | $text
  | if type != "string" or ($format | type) != "string" then error($error)
    else try ((. + " 01" | _strptime($format + " %d")) | _without_day(true))
      catch ($text | try (("1900-01-01 " + . | _strptime("%Y-%m-%d " + $format)) | _without_day(false)) catch error($error)) end);
def range($from; $to; $by): if $by == 0 then empty else _range($from; $to; $by) end;
def range($from; $to): if ($from | type) == "number" and ($to | type) == "number" then _range($from; $to; 1)
  else error("Range bounds must be numeric") end;
def range($to): range(0; $to);
def nan: _nan;
def infinite: _infinite;
def isboolean: type == "boolean";
def isnumber: type == "number";
def isstring: type == "string";
def isarray: type == "array";
def isobject: type == "object";
def isnan: type == "number" and _isnan;
def isinfinite: type == "number" and (. == infinite or . == -infinite);
def isnormal: type == "number" and ((. == 0 or isnan or isinfinite) | not);
def scalars: select(type | . != "array" and . != "object");
def iterables: select(type | . == "array" or . == "object");
def isvalid(f): try (f | true) catch false;
def toarray: if type == "array" then . else [.] end;

def paths: path(..) | select(length > 0);
def paths(node): . as $in | paths | select(. as $p | $in | getpath($p) | node);
def leaf_paths: paths(scalars);
def getpath($path): reduce $path[] as $p (.; .[$p]);
def setpath($path; $value): getpath($path) = $value;
def pick(f): . as $in | reduce path(f) as $p (null; setpath($p; $in | getpath($p)));
def delpaths($paths): reduce ($paths | sort | reverse[]) as $path (.; _delpath($path));
def del(f): delpaths([path(f)]);
def to_entries: [keys_unsorted[] as $key | {$key, value: .[$key]}];
def from_entries: reduce .[] as $e ({};
  . + { ($e | if type == "object" then
          (if has("key") then .key elif has("k") then .k elif has("name") then .name
           elif has("Name") then .Name elif has("Key") then .Key else .K end)
          | if type == "string" then . elif type == "null" then "null" else tojson end
        else error("Cannot use \(type) as an object entry") end):
        ($e | if has("value") then .value elif has("v") then .v else .Value end) });
def with_entries(f): to_entries | map(f) | from_entries;
def map_values(f): .[] |= f;
def walk(f): def w: if type == "object" then map_values(w) elif type == "array" then map(w) else . end | f; w;
def flatten($depth):
  def f($n): reduce .[] as $x ([];
    if ($x | type) == "array" and $n != 0 then . + ($x | f($n - 1)) else . + [$x] end);
  if $depth < 0 then error("flatten depth must not be negative") else f($depth) end;
def flatten: flatten(1e9);
def transpose: if . == [] then [] else
  . as $in | (map(length) | max) as $max | [range(0; $max) as $j | [range(0; $in | length) as $i | $in[$i][$j]]] end;
def in(xs): . as $x | xs | has($x);
def inside(xs): . as $x | xs | contains($x);
def combinations: if length == 0 then [] else .[0][] as $x | (.[1:] | combinations) as $w | [$x] + $w end;
def combinations(n): . as $dot | [range(n)] | map($dot) | combinations;
def ascii: [.] | implode;
def todate: strftime("%Y-%m-%dT%H:%M:%SZ");
def todateiso8601: todate;
def fromdate: fromdateiso8601;
def date: todate;
def dateadd(u; n): . + n;
def datesub(u; n): . - n;
def localtime: gmtime;
def strflocaltime($format): strftime($format);
def finites: select(type == "number" and (isinfinite | not));
def recurse_down: recurse;
def gamma: lgamma;
def nearbyint: rint;
def normals: select(isnormal);
def tostream: path(def r: (.[]? | r), .; r) as $p | getpath($p) | reduce path(.[]?) as $q ([$p, .]; [$p + $q]);
def fromstream(f): {x: null, e: false} as $init
  | foreach f as $i ($init;
      if .e then $init else . end
      | if $i | length == 2
        then setpath(["e"]; $i[0] | length == 0) | setpath(["x"] + $i[0]; $i[1])
        else setpath(["e"]; $i[0] | length == 1) end;
      if .e then .x else empty end);
def truncate_stream(stream): . as $n | null | stream | . as $input
  | if (.[0] | length) > $n then setpath([0]; .[0][$n:]) else empty end;
def limit($n; f): if $n < 0 then f else limit_($n; f) end;
def repeat(f): def rec: f, rec; rec;
def repeat(f; $init): $init | repeat(f);
def nth($n): .[$n];
def nth($n; f): if $n < 0 then error("Out of bounds negative array index") else last(limit($n + 1; f)) end;
def IN(s): any(s == .; .);
def IN(src; s): any(src == s; .);
def INDEX(stream; f): reduce stream as $row ({}; .[$row | f | tostring] |= $row);
def INDEX(f): INDEX(.[]; f);
def JOIN($index; f): [.[] | [., $index[f]]];
def JOIN($index; stream; f): stream | [., $index[f]];
def JOIN($index; stream; f; g): stream | [., $index[f]] | g;
def GROUP_BY(f): group_by(f);
def ascii(f): f | ascii;
def index($i): _indices($i) | if . == null then null else .[0] end;
def rindex($i): _indices($i) | if . == null then null else .[-1:][0] end;
def indices($i): _indices($i);
def keys: keys_unsorted | sort;
def split($re; $flags): [_parts($re; "g" + $flags)[] | select(type == "string")];
def split($sep): _split($sep);
def splits($re; flags): split($re; flags) | .[];
def splits($re): splits($re; null);
def match($re; $flags): _match($re; $flags)[];
def match($re): match($re; null);
def test($re; $flags): _test($re; $flags);
def test($re): test($re; null);
def _captured: reduce (.captures[] | select(.name != null)) as $c ({}; . + {($c.name): $c.string});
def capture($re; $flags): match($re; $flags) | _captured;
def capture($re): capture($re; null);
def scan($re; $flags): match($re; "g" + $flags) | if (.captures | length) > 0 then [.captures[].string] else .string end;
def scan($re): scan($re; null);
def sub($re; str; $flags): reduce _parts($re; $flags)[] as $part ("";
  . + (if ($part | type) == "object" then ($part | _captured | str) else $part end));
def sub($re; str): sub($re; str; null);
def gsub($re; str): sub($re; str; "g");
def gsub($re; str; $flags): sub($re; str; "g" + $flags);
def ascii_downcase: _ascii_downcase;
def ascii_upcase: _ascii_upcase;
def @text: tostring;
def @json: tojson;
def _row($format; f): if type == "array" then f else error("\(type) cannot be \($format)-formatted, only an array can be") end;
def _escape_tsv: split("\\") | join("\\\\") | split("\t") | join("\\t") | split("\n") | join("\\n") | split("\r") | join("\\r");
def @csv: _row("csv"; map(if type == "number" then tojson elif type == "boolean" then tojson
  elif type == "null" then "" elif type == "string" then "\"" + (split("\"") | join("\"\"")) + "\""
  else error("\(type) (\(tojson)) is not valid in a csv row") end) | join(","));
def @tsv: _row("tsv"; map(if type == "number" then tojson elif type == "boolean" then tojson
  elif type == "null" then "" elif type == "string" then _escape_tsv
  else error("\(type) (\(tojson)) is not valid in a tsv row") end) | join("\t"));
def @html: tostring | _escape_html;
def @sh: [if type == "array" then .[] else . end | if type == "string" then "'" + (split("'") | join("'\\''")) + "'"
  elif type == "array" or type == "object" then error("\(type) (\(tojson)) can not be escaped for shell") else tojson end] | join(" ");
def @base64d: tostring | _decode_base64;
def @base32: tostring | _encode_base32;
def @base32d: tostring | _decode_base32;
def _turned: reverse;
def reverse: if . == null or . == {} or . == "" then [] else _turned end;
def @uri: tostring | encode_uri | split("%21") | join("!") | split("%27") | join("'") | split("%28") | join("(")
  | split("%29") | join(")") | split("%2A") | join("*");
def format($f): if $f == "text" then @text elif $f == "json" then @json elif $f == "html" then @html
  elif $f == "uri" then @uri elif $f == "csv" then @csv elif $f == "tsv" then @tsv elif $f == "sh" then @sh
  elif $f == "base64" then @base64 elif $f == "base64d" then @base64d
  elif $f == "base32" then @base32 elif $f == "base32d" then @base32d
  else error("\($f | if type == "string" then . else "\(type) (\(tojson))" end) is not a valid format") end;
