#!/usr/bin/perl
# A NaN of a row is in every result that hangs on the row's maximum: found by the maximum itself, or, where a sum beside it has the NaN anyway, left to
# that sum, with one operation a term instead of three (fusion/emit/nan.c). And what drivers make of NaNs that nothing hangs on. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

my ($rows, $columns) = (9, 77);


sub file_of { my ($name, @values) = @_; return npy($name, '<f4', [$rows, $columns], pack 'f<*', @values) }

# Numbers of NaNs: of each row, or of each result of a row.
sub nans {
  my ($path) = @_;
  my $file = slurp($path);
  return "no file $path" if length $file < 10;
  my @values = unpack 'f<*', substr $file, 10 + unpack 'v', substr $file, 8, 2;
  return join ' ', map { my $row = $_; scalar grep { $_ != $_ } @values[$row * @values / $rows .. ($row + 1) * @values / $rows - 1] } 0 .. $rows - 1;
}

my ($nan, $inf) = (unpack('f<', pack 'V', 0x7fc00000), 9**9**9);
my @x = map { sin($_ * 1.7) * 4 } 0 .. $rows * $columns - 1;
my @z = map { cos($_ * 0.3) } @x;
$x[0 * $columns + 3] = $nan;                                # beside larger ones
$x[2 * $columns + $_] = $nan for 0 .. $columns - 1;         # nothing else
$x[3 * $columns + $columns - 1] = $nan;                     # the last, which fills no vector
$x[4 * $columns + $_] = -$inf for 0 .. $columns - 1;        # an infinity less itself
$x[5 * $columns + 40] = $inf;
$x[6 * $columns + $_] = $_ == 20 ? $nan : -$inf for 0 .. $columns - 1;
my ($x_file, $z_file) = (file_of('x.npy', @x), file_of('z.npy', @z));

my $full = "f32[$rows,$columns]";
my $e = "  %m = reduce.max %x, axes=[1], keep\n  %mm: $full = broadcast %m\n  %d = sub %x, %mm\n  %e = exp %d\n";
my $s = "  %s = reduce.sum %e, axes=[1], keep\n  %ss: $full = broadcast %s\n";
# name, body, results, whether the sum has the NaN, and x in place of z
my @cases = (
  ['softmax', "  %y = softmax %x\n", 'y=%y', 1],
  ['log_softmax', "  %y = log_softmax %x\n", 'y=%y', 1],
  ['softmin', "  %n = neg %x\n  %m = reduce.min %n, axes=[1], keep\n  %mm: $full = broadcast %m\n  %d = sub %mm, %n\n  %e = exp %d\n$s  %y = div %e, %ss\n", 'y=%y', 1],
  ['log of sums', "$e  %s = reduce.sum %e, axes=[1], keep\n  %l = log %s\n  %y = add %l, %m\n", 'y=%y', 1],
  ['the maximum is a result', "$e$s  %y = div %e, %ss\n", 'y=%y, m=%m', 0],
  ['no sum', "  %m = reduce.max %x, axes=[1], keep\n  %mm: $full = broadcast %m\n  %y = sub %z, %mm\n", 'y=%y', 0],
  ['a sum of others', "  %m = reduce.max %x, axes=[1], keep\n  %mm: $full = broadcast %m\n  %d = sub %z, %mm\n  %e = exp %d\n$s  %y = div %e, %ss\n", 'y=%y', 0],
  ['a choice', "$e  %k = lt %x, %z\n  %o: f32[] = const 0.0\n  %oo: $full = broadcast %o\n  %q = select %k, %e, %oo\n"
             . "  %s = reduce.sum %q, axes=[1], keep\n  %ss: $full = broadcast %s\n  %y = div %q, %ss\n", 'y=%y', 0],
  ['a comparison of what the sum divides', "$e$s  %p = div %e, %ss\n  %h: f32[] = const 0.5\n  %hh: $full = broadcast %h\n  %k = lt %p, %hh\n  %y = select %k, %z, %e\n", 'y=%y', 0],
  ['the sum of the row behind', "$e  %s = reduce.sum %e, axes=[1]\n  %r = slice %s, starts=[8], sizes=[9], steps=[-1]\n  %rr: $full = broadcast %r, axes=[0]\n  %y = div %e, %rr\n", 'y=%y', 0],
);

my @devices = map { /^((?!host)\S+)/ ? $1 : () } split /\n/, `$sinter devices`;
for my $case (@cases) {
  my ($name, $body, $results, $left) = @$case;
  my $inputs = "%x: $full" . ($body =~ /%z/ ? ", %z: $full" : '');
  my $model = put('model.snt', "graph \@rows($inputs) {\n$body  return $results\n}\n");
  my @given = ('--input', "x=$x_file", $body =~ /%z/ ? ('--input', "z=$z_file") : ());
  my @outputs = map { "--output $_=$dir/$_.npy" } map { /(\w+)=/ } split /, /, $results;
  my (%found, $said);
  for my $how ('host', @devices) {
    unlink glob "$dir/[ym].npy";
    $said .= `$sinter run $model --quiet --device $how @given @outputs 2>&1`;
    $found{$how} = join ', ', map { nans($_) } map { /=(.*)/ } @outputs;
  }
  like($found{host}, qr/[1-9]/, "$name: the host has NaNs") or diag($said);
  is($found{$_}, $found{host}, "$name: $_ has the host's") or diag($said) for @devices;
  $said = `$sinter compile $model --target opencl --profile pocl -o $dir/out 2>&1`;
  my $text = join '', map { slurp($_) } glob "$dir/out/*.cl";
  unlink glob "$dir/out/*";
  my $checks = () = $text =~ /int\d+ \w+ = (\w+) != \1;/g;
  ok($text =~ /__kernel/ && ($left ? $checks <= 5 : $checks), "$name: " . ($left ? 'no term is asked' : 'each term is asked')) or diag("$checks $said");
}

# Lanes of a vector beside one that is NaN or infinite are what they are without it.
my $remainder = put('remainder.snt', "graph \@remainder(%x: $full, %z: $full) {\n  %a = cast %x, dtype=f64\n  %b = cast %z, dtype=f64\n"
                  . "  %r = rem %a, %b\n  %y = cast %r, dtype=f32\n  return y=%y\n}\n");
my @near = map { my $at = $_; $at % 41 == 5 ? ($nan, $inf, -$inf)[$at % 3] : 0.01 + 8 * abs sin $at * 1.7 } 0 .. $rows * $columns - 1;
my @by = map { 0.1 + 7 * abs cos $_ * 0.3 } 0 .. $#near;
my @pair = ('--input', 'x=' . file_of('near.npy', @near), '--input', 'z=' . file_of('by.npy', @by));
my $want = `$sinter run $remainder --quiet --device host @pair --output y=$dir/y.npy 2>&1` . slurp("$dir/y.npy");
for my $device (@devices) {
  unlink "$dir/y.npy";
  my $said = `$sinter run $remainder --quiet --device $device @pair --output y=$dir/y.npy 2>&1`;
  if ($said =~ /unsupported/) { SKIP: { skip "$device: $said", 1 } next }
  my @is = unpack 'f<*', substr slurp("$dir/y.npy"), -4 * $rows * $columns;
  my @ought = unpack 'f<*', substr $want, -4 * $rows * $columns;
  is(scalar(grep { $is[$_] != $ought[$_] && !($is[$_] != $is[$_] && $ought[$_] != $ought[$_]) } 0 .. $#ought), 0, "remainders of f64 beside NaNs: $device")
    or diag($said);
}

# A limit by one comparison of bits, or by three operations: each kind of number beside each kind of limit, bit by bit. A zero of either sign may be
# either (drivers choose so).
my @kinds = ((map { ($_, -$_) } 0, 1e-30, 0.25, 0.999999940395355, 1, 1.00000011920929, 6, 3.4028234663852886e38, $inf), $nan, unpack("f<", pack "V", 0xffc00001));
my %limits = (above => ['max', 0, -1, -0.25, 1, -$inf], below => ['min', 1, 6, 0, -1, $inf]);
my $values = npy('kinds.npy', '<f4', [scalar @kinds], pack 'f<*', @kinds);
my ($limited, @limited) = ('');
for my $side (sort keys %limits) {
  my ($op, @at) = @{$limits{$side}};
  for (0 .. $#at) {
    push @limited, "$side$_";
    $limited .= "  %$side$_ = $op %x, " . (abs $at[$_] == $inf ? $at[$_] < 0 ? '-inf' : 'inf' : sprintf '%.2f', $at[$_]) . "\n";
  }
}
$limited .= "  %c = max %x, 0.0\n  %clamped = min %c, 1.0\n";
push @limited, 'clamped';
my $count = @kinds;
my $limits = put('limits.snt', "graph \@limits(%x: f32[$count]) {\n$limited  return " . join(', ', map { "$_=%$_" } @limited) . "\n}\n");
sub kind { my ($word) = @_; my $size = $word & 0x7fffffff; return $size > 0x7f800000 ? 'NaN' : $size ? sprintf '%x', $word : '0' }
sub kinds { my ($path) = @_; my $file = slurp($path); return map { kind($_) } unpack 'V*', substr $file, -4 * $count }
my %bits;
for my $device ('host', @devices) {
  my $said = `$sinter run $limits --quiet --device $device --input x=$values @{[map { "--output $_=$dir/l.$_.npy" } @limited]} 2>&1`;
  $bits{$device} = join ' ', map { kinds("$dir/l.$_.npy") } @limited;
  unlink glob "$dir/l.*.npy";
  $device eq 'host' ? is(scalar(split / /, $bits{host}), $count * @limited, 'limits: the host') : is($bits{$device}, $bits{host}, "limits: $device has the host's bits");
  diag($said) if $said;
}
done_testing();
